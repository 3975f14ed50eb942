# What `cmake --install` gives: libweft.so and libweft.a, made of the layers' objects (which are compiled once), the
# public headers under include/weft, a package for find_package(weft) and one for pkg-config. The program `weft` and its
# manual pages are installed by apps/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Counts the changes of the installed headers after which programs must be compiled anew. The version of the project
# says nothing about that.
set(WEFT_SOVERSION 9)

set(layers
  weft_base weft_mpa weft_ddp weft_rdmap weft_verbs_api weft_verbs_iwpm weft_verbs_soft weft_verbs_ibv weft_xdr weft_rpcrdma
  weft_nfsulb)
# What the layers link, for both libraries; and the same in pkg-config's words, for weft-static.
set(needs
  absl::any_invocable absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::inlined_vector fmt::fmt
  PkgConfig::ISAL Threads::Threads)
set(WEFT_PC_REQUIRES
  "absl_any_invocable absl_flat_hash_map absl_flat_hash_set absl_function_ref absl_inlined_vector fmt libisal")
if(WEFT_BACKENDS MATCHES ibv)
  set(WEFT_IBV_PART ibv)
  # Known to verbs-shim/ibv alone until now.
  pkg_check_modules(IBVERBS REQUIRED IMPORTED_TARGET libibverbs)
  pkg_check_modules(RDMACM REQUIRED IMPORTED_TARGET librdmacm)
  list(APPEND needs PkgConfig::IBVERBS PkgConfig::RDMACM)
  string(APPEND WEFT_PC_REQUIRES " libibverbs librdmacm")
endif()

foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()
foreach(kind shared static)
  string(TOUPPER ${kind} type)
  add_library(weft_${kind} ${type} ${objects})
  target_link_libraries(weft_${kind} PRIVATE ${needs})
  target_compile_features(weft_${kind} INTERFACE cxx_std_20)
  target_include_directories(weft_${kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  set_target_properties(weft_${kind} PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft LINKER_LANGUAGE CXX)
  install(TARGETS weft_${kind} EXPORT weft-${kind})
  install(EXPORT weft-${kind} NAMESPACE weft:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
endforeach()
set_target_properties(weft_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${WEFT_SOVERSION}
                      LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/libweft.map)
target_link_options(weft_shared PRIVATE LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/libweft.map LINKER:-z,defs
                    LINKER:-Bsymbolic-functions LINKER:--as-needed)

# The public headers, each where the sources have it: programs include "rpcrdma/client.h" as they do.
foreach(header
    base/bytes.h base/result.h base/time.h verbs-shim/api/addr_info.h verbs-shim/api/cm.h verbs-shim/api/explain.h verbs-shim/api/log.h verbs-shim/api/result.h
    verbs-shim/api/types.h verbs-shim/api/verbs.h verbs-shim/soft/device.h verbs-shim/soft/trace.h verbs-shim/ibv/device.h
    rpcrdma/binding.h rpcrdma/buffer_pool.h rpcrdma/call.h rpcrdma/call_observer.h rpcrdma/client.h rpcrdma/known_servers.h
    rpcrdma/earned_time.h rpcrdma/link_observer.h rpcrdma/policies.h rpcrdma/rpc_message.h rpcrdma/server.h rpcrdma/server_statistics.h rpcrdma/service.h
    rpcrdma/threaded.h rpcrdma/xdr/xdr.h
    nfsulb/bindings.h nfsulb/netid.h nfsulb/nfs3.h nfsulb/programs.h nfsulb/schema.h nfsulb/walk.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/${folder})
endforeach()

configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft NO_SET_AND_CHECK_MACRO)
# Below 1.0 a minor version may change anything.
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

# Relative to the file itself, so that the tree may be installed, or moved, anywhere.
file(RELATIVE_PATH WEFT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/weft.pc.in weft.pc @ONLY)
configure_file(cmake/weft-static.pc.in weft-static.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc ${PROJECT_BINARY_DIR}/weft-static.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
