#include "runtime/text/version_text.hpp"

#include "messages/errc.hpp"
#include "messages/version.hpp"

#include <caf/config.hpp>
#include <fmt/format.h>

namespace ringmaster {

std::string version_text(const std::string& program) {
  return fmt::format("{} {}\nCAF {}.{}.{}, protocol {}, journal format {}\n", program, ringmaster_version,
                     CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION, protocol_version, journal_format);
}

caf::error check_protocol(const std::string& who, uint32_t theirs, const std::string& whose) {
  if (theirs == protocol_version)
    return caf::none;
  return make_error(errc::wrong_version, fmt::format("{} speaks protocol {} of ringmaster, {} protocol {} (version "
                                                     "{}): take the same version of it for all processes of a cluster",
                                                     who, theirs == 0 ? "4 or an older one" : std::to_string(theirs),
                                                     whose, protocol_version, ringmaster_version));
}

} // namespace ringmaster
