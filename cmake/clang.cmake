# The toolchain of the presets that need clang: the lowest version from 16 on (the older ones lack parts of C++20).
set(names)
foreach(version RANGE 16 40)
  list(APPEND names clang++-${version})
endforeach()
find_program(WEFT_CLANGXX NAMES ${names} clang++ DOC "clang 16 or newer")
if(NOT WEFT_CLANGXX)
  message(FATAL_ERROR "No clang of version 16 or newer was found. Install one (Debian: apt-get install clang-16 or "
                      "clang-19), or name it with -DWEFT_CLANGXX=PATH.")
endif()
set(CMAKE_CXX_COMPILER ${WEFT_CLANGXX})
