#pragma once

#include <cstdint>
#include <string>

/// Namespace of the handles. Programs see it as part of `ringmaster`. The library itself, which has classes of the same
/// names, names it explicitly.
#ifdef RINGMASTER_INTERNAL
#define RINGMASTER_API ringmaster::api
#else
#define RINGMASTER_API ringmaster::inline api
#endif

namespace RINGMASTER_API {

/// Version of the library that the program is linked with, such as "0.2.0". Thread-safe.
std::string library_version();

/// Version of the protocol between processes. All processes of a cluster must have the same one. Thread-safe.
uint32_t protocol_number();

} // namespace RINGMASTER_API
