#pragma once

#include <caf/expected.hpp>

#include <string>
#include <string_view>

namespace ringmaster {

/// The INI text with section `name` replaced by `section`, which starts with its header and ends with a line feed. If
/// there is no such section, it is appended. All other bytes stay the same, and so do comments after the old section's
/// last key. A value of the old section takes one line. Errors: invalid_config if the section appears twice.
caf::expected<std::string> replace_section(std::string_view text, std::string_view name, std::string_view section);

} // namespace ringmaster
