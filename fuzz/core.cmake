# Targets of mpa, ddp and rdmap.
weft_fuzz(fuzz_mpa_startup_frame ${CMAKE_CURRENT_LIST_DIR}/mpa_startup_frame.cc LINK weft_mpa
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/mpa_startup_frame)
weft_fuzz(fuzz_mpa_fpdu_reader ${CMAKE_CURRENT_LIST_DIR}/mpa_fpdu_reader.cc LINK weft_mpa
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/mpa_fpdu_reader)
weft_fuzz(fuzz_ddp_segment ${CMAKE_CURRENT_LIST_DIR}/ddp_segment.cc LINK weft_ddp
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/ddp_segment)
