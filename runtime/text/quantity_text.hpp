#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ringmaster {

/// "512 B", "1.5 KiB", "3 GiB".
std::string bytes_text(uint64_t bytes);
/// The exact size in the form of an option: "64K", "1G", "1000".
std::string size_text(uint64_t bytes);
/// "870 ns", "12.5 us", "3.21 ms", "1.5 s".
std::string duration_text(uint64_t ns);
std::string duration_text(std::chrono::nanoseconds x); ///< Not negative.
/// For up to years: "250 ms", "30 s", "13.6 min", "3.09 h", "54 d". Not negative.
std::string long_duration_text(double s);
/// "870", "12.5 k", "3.21 M", "1.5 G".
std::string count_text(uint64_t n);
/// "1 device", "7 devices".
std::string counted(uint64_t n, const char* noun);

} // namespace ringmaster
