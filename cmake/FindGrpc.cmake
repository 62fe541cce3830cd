# Finds gRPC for C++ and its plugin of protoc, and defines Grpc::grpc. Debian: libgrpc++-dev and protobuf-compiler-grpc.
# (gRPC's own CMake package wants the development packages of all that gRPC links.)
find_path(GRPC_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(GRPC_CPP_LIBRARY grpc++)
find_library(GRPC_LIBRARY grpc)
find_library(GRPC_GPR_LIBRARY gpr)
find_library(GRPC_ABSL_LIBRARY absl_synchronization) # gRPC's headers use its mutex
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)

include(FindPackageHandleStandardArgs)
set(Grpc_FIND_QUIETLY TRUE)
find_package_handle_standard_args(Grpc REQUIRED_VARS
  GRPC_CPP_LIBRARY GRPC_LIBRARY GRPC_GPR_LIBRARY GRPC_ABSL_LIBRARY GRPC_INCLUDE_DIR GRPC_CPP_PLUGIN)

if(Grpc_FOUND AND NOT TARGET Grpc::grpc)
  find_package(Threads REQUIRED)
  add_library(Grpc::grpc INTERFACE IMPORTED)
  set_target_properties(Grpc::grpc PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${GRPC_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES
      "${GRPC_CPP_LIBRARY};${GRPC_LIBRARY};${GRPC_GPR_LIBRARY};${GRPC_ABSL_LIBRARY};Threads::Threads")
endif()
