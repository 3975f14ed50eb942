# Targets of mpa, ddp and rdmap.
weft_fuzz(fuzz_mpa_startup_frame ${CMAKE_CURRENT_LIST_DIR}/mpa_startup_frame.cc LINK weft_mpa
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/mpa_startup_frame)
weft_fuzz(fuzz_mpa_fpdu_reader ${CMAKE_CURRENT_LIST_DIR}/mpa_fpdu_reader.cc LINK weft_mpa
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/mpa_fpdu_reader)
weft_fuzz(fuzz_ddp_segment ${CMAKE_CURRENT_LIST_DIR}/ddp_segment.cc LINK weft_ddp
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/ddp_segment)
weft_fuzz(fuzz_rdmap_terminate ${CMAKE_CURRENT_LIST_DIR}/rdmap_terminate.cc LINK weft_rdmap
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/rdmap_terminate)
weft_fuzz(fuzz_rdmap_stream ${CMAKE_CURRENT_LIST_DIR}/rdmap_stream.cc LINK weft_rdmap
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/rdmap_stream)
