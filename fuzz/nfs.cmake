# Targets of nfsulb, apps/nfs3 and apps/onc_tcp.
weft_fuzz(fuzz_nfs3_args ${CMAKE_CURRENT_LIST_DIR}/nfs3_args.cc LINK weft_nfs3
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs3_args)
weft_fuzz(fuzz_nfs3_results ${CMAKE_CURRENT_LIST_DIR}/nfs3_results.cc LINK weft_nfs3
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs3_results)
weft_fuzz(fuzz_nfs3_mount ${CMAKE_CURRENT_LIST_DIR}/nfs3_mount.cc LINK weft_nfs3
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs3_mount)
weft_fuzz(fuzz_nfs3_binding ${CMAKE_CURRENT_LIST_DIR}/nfs3_binding.cc LINK weft_nfs3 weft_nfsulb
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs3_binding)
weft_fuzz(fuzz_nfs3_record ${CMAKE_CURRENT_LIST_DIR}/nfs3_record.cc LINK weft_onc_tcp
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs3_record)
weft_fuzz(fuzz_nfs4_walk ${CMAKE_CURRENT_LIST_DIR}/nfs4_walk.cc LINK weft_nfsulb
          CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nfs4_walk)
