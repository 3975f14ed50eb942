# Targets of verbs-shim.
weft_fuzz(fuzz_iwpm_mapper ${CMAKE_CURRENT_LIST_DIR}/iwpm_mapper.cc LINK weft_verbs_iwpm
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/iwpm_mapper)
