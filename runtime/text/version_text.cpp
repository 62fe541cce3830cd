#include "runtime/text/version_text.hpp"

#include "messages/version.hpp"

#include <caf/config.hpp>
#include <fmt/format.h>

namespace ringmaster {

std::string version_text(const std::string& program) {
  return fmt::format("{} {}\nCAF {}.{}.{}, protocol {}, journal format {}\n", program, ringmaster_version,
                     CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION, protocol_version, journal_format);
}

} // namespace ringmaster
