# weft_rpcgen_library(NAME [PREFIX word] FILE.x...): the encoders and decoders that rpcgen makes of data descriptions, at
# build time. A PREFIX takes the place of "rpcrdma_" and "rpcrdma2_" in every name, so that one program can hold two
# descriptions of one protocol.
enable_language(C)
find_program(RPCGEN rpcgen REQUIRED)
pkg_check_modules(TIRPC REQUIRED IMPORTED_TARGET libtirpc)

function(weft_rpcgen_library name)
  cmake_parse_arguments(arg "" "PREFIX" "" ${ARGN})
  set(rename)
  if(arg_PREFIX)
    set(rename COMMAND sed -i -E -e "s/rpcrdma2?_/${arg_PREFIX}_/g" -e "s/\\buint(32|64)\\b/${arg_PREFIX}_uint\\1/g")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${folder})
  set(sources)
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(base ${file} NAME_WE)
    set(command ${rename})
    if(command)
      list(APPEND command ${base}.x)
    endif()
    add_custom_command(
      OUTPUT ${folder}/${base}.h ${folder}/xdr_${base}.c
      COMMAND ${CMAKE_COMMAND} -E copy ${file} ${folder}/${base}.x
      ${command}
      COMMAND ${CMAKE_COMMAND} -E rm -f ${base}.h xdr_${base}.c
      COMMAND ${RPCGEN} -N -i 0 -h -o ${base}.h ${base}.x
      COMMAND ${RPCGEN} -N -i 0 -c -o xdr_${base}.c ${base}.x
      WORKING_DIRECTORY ${folder} DEPENDS ${file} VERBATIM)
    list(APPEND sources ${folder}/${base}.h ${folder}/xdr_${base}.c)
  endforeach()
  add_library(${name} STATIC ${sources})
  target_compile_options(${name} PRIVATE -w)  # rpcgen's code, not ours
  target_include_directories(${name} SYSTEM PUBLIC ${folder} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC PkgConfig::TIRPC)
endfunction()
