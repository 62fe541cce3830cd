#pragma once

#include "diagnosis/readers/file_evidence.hpp"

#include <caf/error.hpp>

#include <string>
#include <vector>

namespace ringmaster::diagnosis {

/// Finds out which rank each dump is of, and sets `rank`. PyTorch writes the rank into the name only, and users rename
/// files. A rank must be a member of all groups of its dump, at the place that its sends and receives name. In this
/// order: what the content says; the number at the same place in all names (after "rank", then the last, the one before
/// it ...); the only rank that the groups allow. Errors: corrupt, with the file.
caf::error assign_ranks(std::vector<file_evidence*>& dumps, std::vector<std::string>& remarks);

} // namespace ringmaster::diagnosis
