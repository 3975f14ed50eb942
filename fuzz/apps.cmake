# Targets of the programs.
weft_fuzz(fuzz_dissect ${CMAKE_CURRENT_LIST_DIR}/dissect.cc LINK weft_app_dissect
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/dissect)
weft_fuzz(fuzz_dissect_pcapng ${CMAKE_CURRENT_LIST_DIR}/dissect_pcapng.cc LINK weft_app_dissect
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/dissect_pcapng)
