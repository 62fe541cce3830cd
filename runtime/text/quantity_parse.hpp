#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster {

// Quantities in options, in the configuration, in hostfiles. Errors: invalid_argument, with the text and what is
// allowed.

/// The whole text as a number, such as "7.5e9"; none if it is not one.
std::optional<double> decimal_in(std::string_view text);
/// A whole number, decimal, or hexadecimal after 0x, as device ids are printed.
caf::expected<uint64_t> parse_whole(std::string_view text, uint64_t min, uint64_t max = UINT64_MAX);
/// "4096", "64K" and "64KiB", which are 65,536, "64KB", which is 64,000; likewise M, G, T and P. Case does not matter.
/// Whole numbers only.
caf::expected<uint64_t> parse_bytes(std::string_view text, uint64_t max = UINT64_MAX, uint64_t min = 0);
/// "5us", "200ns", "1.5ms", "2s", "2min", "1.5h", "2d", "700ps", "0"; in picoseconds.
caf::expected<int64_t> parse_duration_ps(std::string_view text);
/// The same in seconds, for durations too long for picoseconds: "50000h"; at most 1000 years.
caf::expected<double> parse_duration_s(std::string_view text);
/// "50GB/s", "12.5GiB/s", "400Gbit/s", "400Gbps"; in bytes a second, more than 0.
caf::expected<double> parse_bandwidth(std::string_view text);
/// "989 TFLOP/s", "989TFLOPS", "2.25PFLOP/s"; in operations a second, more than 0.
caf::expected<double> parse_operation_rate(std::string_view text);

} // namespace ringmaster
