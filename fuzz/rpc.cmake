# Targets of rpcrdma.
foreach(target rpcrdma_v1_header rpcrdma_properties rpcrdma_reassembly rpcrdma_rpc_message rpcrdma_xdr)
  weft_fuzz(fuzz_${target} ${CMAKE_CURRENT_LIST_DIR}/${target}.cc LINK weft_rpcrdma
            CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/${target})
endforeach()
# Both codecs of version 2, against a decoder by rpcgen.
foreach(target rpcrdma_v2_cel05_header rpcrdma_v2_wg07_header)
  weft_fuzz(fuzz_${target} ${CMAKE_CURRENT_LIST_DIR}/${target}.cc LINK weft_rpcrdma weft_wire_v2_agreement
            CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/${target})
endforeach()
if(WEFT_TESTS OR WEFT_FUZZ)
  weft_fuzz(fuzz_rpcrdma_link ${CMAKE_CURRENT_LIST_DIR}/rpcrdma_link.cc LINK weft_rpcrdma weft_rpcrdma_fakes
            CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/rpcrdma_link)
endif()
