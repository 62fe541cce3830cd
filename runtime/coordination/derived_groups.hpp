#pragma once

#include "runtime/coordination/device_registry.hpp"

namespace ringmaster {

/// Ranks of new communicators, by colour, ascending.
using rank_groups = std::map<int32_t, device_ids>;

/// Which communicators a split, duplicate, shrink or grow makes of one whose ranks are on these devices:
/// MPI_Comm_split's rules. Errors: invalid_argument with what does not fit; too_few_devices. Whether the devices are
/// there is not looked at.
caf::expected<rank_groups> derived_groups(const proto::CommDeriveRequest& x, const device_ids& ranks,
                                          const device_registry& devices);

} // namespace ringmaster
