#pragma once

#include <caf/expected.hpp>

#include <string>
#include <string_view>

namespace ringmaster {

/// The INI text with section `name` replaced by `section`, which begins with its header and ends with a line's end;
/// behind everything else where there was none. All other bytes stay as they are, and so do comments behind the old
/// section's last key. A value of the old section takes one line. Errors: invalid_config where the section is there
/// twice.
caf::expected<std::string> replace_section(std::string_view text, std::string_view name, std::string_view section);

} // namespace ringmaster
