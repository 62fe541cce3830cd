# Finds what ringmaster-gateway links, and defines Grpc::grpc, Gateway::httplib and Gateway::prometheus. Debian:
# libgrpc++-dev, grpc-proto, libcpp-httplib-dev, libssl-dev and prometheus-cpp-dev.
find_package(Grpc)
# The protobuf files of the health and reflection services.
find_path(GATEWAY_GRPC_PROTO_DIR grpc/reflection/v1alpha/reflection.proto PATHS /usr/share/grpc-proto)
find_path(GATEWAY_HTTPLIB_INCLUDE_DIR httplib.h)
find_library(GATEWAY_HTTPLIB_LIBRARY cpp-httplib)
find_package(OpenSSL QUIET)
find_path(GATEWAY_PROMETHEUS_INCLUDE_DIR prometheus/registry.h)
find_library(GATEWAY_PROMETHEUS_LIBRARY prometheus-cpp-core)

include(FindPackageHandleStandardArgs)
set(GatewayLibraries_FIND_QUIETLY TRUE)
find_package_handle_standard_args(GatewayLibraries REQUIRED_VARS
  Grpc_FOUND GATEWAY_GRPC_PROTO_DIR GATEWAY_HTTPLIB_LIBRARY GATEWAY_HTTPLIB_INCLUDE_DIR OPENSSL_FOUND
  GATEWAY_PROMETHEUS_LIBRARY GATEWAY_PROMETHEUS_INCLUDE_DIR)

if(GatewayLibraries_FOUND AND NOT TARGET Gateway::httplib)
  find_package(Threads REQUIRED)
  add_library(Gateway::httplib INTERFACE IMPORTED)
  # Its classes must have the same members as in Debian's library.
  set(httplib_definitions CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
  set_target_properties(Gateway::httplib PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${GATEWAY_HTTPLIB_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "${httplib_definitions}"
    INTERFACE_LINK_LIBRARIES "${GATEWAY_HTTPLIB_LIBRARY};OpenSSL::SSL;Threads::Threads")
  add_library(Gateway::prometheus INTERFACE IMPORTED)
  set_target_properties(Gateway::prometheus PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${GATEWAY_PROMETHEUS_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${GATEWAY_PROMETHEUS_LIBRARY}")
endif()
