# Read by CTest, after `program`, `list` and the rest were set by weft_test (Weft.cmake): one CTest test for each test suite
# of a gtest program. A process for each of 6,000 tests would take half the time of all tests to start under ASan.
#
# name, program, list: the program's; `list` is what it said to --gtest_list_tests when it was built
# directory, results: where it runs, and the folder of its XML files
# properties: of each test
function(weft_suites prefix)  # and more properties
  if(NOT EXISTS ${list})
    add_test("${prefix}_NOT_BUILT" "${program}")
    return()
  endif()
  file(STRINGS ${list} lines REGEX "^[A-Za-z0-9_/]+\\.( |$)")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "\\..*" "" suite "${line}")
    string(REPLACE "/" "." file "${prefix}.${suite}")
    add_test("${prefix}.${suite}" "${program}" "--gtest_filter=${suite}.*" "--gtest_output=xml:${results}/${file}.xml")
    # A suite is skipped if gtest's last line names a skipped test. With a failure, the last line names that one.
    set_tests_properties("${prefix}.${suite}" PROPERTIES WORKING_DIRECTORY "${directory}" FIXTURES_SETUP test_results
                         SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\] [^\n]*\n*$" ${properties} ${ARGN})
  endforeach()
endfunction()
