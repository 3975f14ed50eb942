# What every target shares: warnings, sanitizers, and three helpers that keep the folders' lists short.

add_library(weft_options INTERFACE)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion
                                              $<$<BOOL:${WEFT_WERROR}>:-Werror>)
# g++ 12 sees overlapping copies inside std::string where there are none (GCC bug 105651).
target_compile_options(weft_options INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>)
# Nobody replaces functions of these libraries at run time: g++ may inline them, although their code is position-independent.
target_compile_options(weft_options INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-fno-semantic-interposition>)
target_include_directories(weft_options INTERFACE ${PROJECT_SOURCE_DIR})
if(WEFT_MUTATE)
  target_compile_definitions(weft_options INTERFACE WEFT_MUTATE)
endif()
if(WEFT_PROBES)
  find_path(WEFT_SDT_INCLUDE sys/sdt.h)
  if(WEFT_SDT_INCLUDE)
    target_compile_definitions(weft_options INTERFACE WEFT_HAVE_SDT)
  else()
    message(STATUS "No USDT probes: sys/sdt.h is missing (Debian package systemtap-sdt-dev)")
  endif()
endif()
# weft_compiles(RESULT SOURCE FLAGS): whether the compiler takes the source.
include(CheckCXXSourceCompiles)
function(weft_compiles result source flags)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(CMAKE_REQUIRED_FLAGS "${flags}")
  check_cxx_source_compiles("${source}" ${result})
endfunction()

if(WEFT_SANITIZE)
  target_compile_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES address)
    # Since 2023 abseil's hash tables lie differently in memory under ASan, and their functions in Debian's library are
    # built without it: both have to take the same form.
    weft_compiles(WEFT_ABSEIL_HAS_ASAN_TABLES "
      #include <absl/base/config.h>
      #if ABSL_LTS_RELEASE_VERSION < 20230802
      #error
      #endif" "")
    if(WEFT_ABSEIL_HAS_ASAN_TABLES)
      target_compile_options(weft_options INTERFACE
        "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/abseil_as_built.h>")
    endif()
    # Half of the time that a program takes to start under ASan is the relocation of its tables.
    target_link_options(weft_options INTERFACE -no-pie)
  endif()
endif()

# weft_unity(NAME [SOURCES...]): several sources of a target in one compilation. That halves the time of a build, since
# headers are read and templates are made once. SOURCES are compiled by themselves: their names clash with those of others.
function(weft_unity name)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE ${WEFT_UNITY_BATCH})
  # Then g++ takes an empty absl::InlinedVector in a std::optional for uninitialised, and an anonymous namespace for one
  # that several programs share. clang reads each source by itself, with these two warnings.
  if(WEFT_UNITY)
    target_compile_options(${name} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized$<SEMICOLON>-Wno-subobject-linkage>)
  endif()
endfunction()

# weft_library(NAME SOURCES... LINK targets...): one layer, or one part of a layer. LINK is the whole of what it may use.
function(weft_library name)
  cmake_parse_arguments(arg "" "" "LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC weft_options ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  weft_unity(${name})
endfunction()

# weft_test_code(NAME): how a target made of tests' own code is compiled: under a sanitizer without optimisation, which
# shortens the build. More arguments are the sources that are compiled by themselves.
function(weft_test_code name)
  weft_unity(${name} ${ARGN})
  if(WEFT_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# weft_test_objects(NAME SOURCES... [ALONE SOURCES...] LINK targets...): sources that several test programs share. They
# are compiled once, those after ALONE by themselves.
function(weft_test_objects name)
  if(NOT WEFT_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "ALONE;LINK" ${ARGN})
  add_library(${name} OBJECT ${arg_UNPARSED_ARGUMENTS} ${arg_ALONE})
  target_link_libraries(${name} PUBLIC weft_options ${arg_LINK} GTest::gmock)
  weft_test_code(${name} ${arg_ALONE})
endfunction()

# weft_test(NAME SOURCES... [ALONE SOURCES...] LINK targets... [BOTH_PLACEMENTS] [WORKERS] [ENVIRONMENT NAME=VALUE]): one
# gtest program; each of its test suites is a CTest test of its own (Suites.cmake) and leaves its results where
# scripts/conformance finds them (CTest test requirement_coverage). ALONE: sources that are compiled by themselves.
# BOTH_PLACEMENTS: and once more with direct placement, as NAME.direct (rdmap/testing/pair.h). WORKERS: and once more over
# devices with two workers, as NAME.workers (SoftConfig::num_workers).
function(weft_test name)
  if(NOT WEFT_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "BOTH_PLACEMENTS;WORKERS" "ENVIRONMENT" "ALONE;LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${arg_ALONE})
  target_link_libraries(${name} PRIVATE weft_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  weft_test_code(${name} ${arg_ALONE})
  # A test ends by itself; this is for one that hangs, on a machine that has much else to do.
  set(properties TIMEOUT 900)
  # An empty value would get lost on the way to CTest, which would take the next word for the value.
  if(arg_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
  set(variants "weft_suites(${name})\n")
  if(arg_BOTH_PLACEMENTS)
    string(APPEND variants "weft_suites(${name}.direct ENVIRONMENT_MODIFICATION WEFT_PLACEMENT=set:direct)\n")
  endif()
  if(arg_WORKERS)
    string(APPEND variants "weft_suites(${name}.workers ENVIRONMENT_MODIFICATION WEFT_WORKERS=set:2)\n")
  endif()
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}.list)
  add_custom_command(TARGET ${name} POST_BUILD COMMAND ${name} --gtest_list_tests > ${list}
                     WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.ctest.cmake CONTENT
"set(program $<TARGET_FILE:${name}>)
set(list ${list})
set(directory ${PROJECT_SOURCE_DIR})
set(results ${PROJECT_BINARY_DIR}/test-results)
set(properties \"${properties}\")
include(${PROJECT_SOURCE_DIR}/cmake/Suites.cmake)
${variants}")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.ctest.cmake)
endfunction()

# weft_fuzz(NAME SOURCE LINK targets... CORPUS dir): a libFuzzer program where WEFT_FUZZ is on; otherwise the same source
# with a plain main that runs each file of the corpus once, as an ordinary test.
function(weft_fuzz name source)
  cmake_parse_arguments(arg "" "CORPUS" "LINK" ${ARGN})
  if(WEFT_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${source} $<TARGET_OBJECTS:weft_run_corpus>)
    if(WEFT_TESTS)
      add_test(NAME ${name}.corpus COMMAND ${name} ${arg_CORPUS})
      set_tests_properties(${name}.corpus PROPERTIES TIMEOUT 300)
    endif()
  endif()
  target_link_libraries(${name} PRIVATE weft_options ${arg_LINK})
endfunction()
