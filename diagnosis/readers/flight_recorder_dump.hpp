#pragma once

#include "diagnosis/readers/dump_tree.hpp"
#include "diagnosis/readers/file_evidence.hpp"

#include <caf/error.hpp>

namespace ringmaster::diagnosis {

/// Whether the value has the keys of a dump of PyTorch's Flight Recorder.
bool is_flight_recorder_dump(const parsed_dump& dump);

/// Reads a dump of versions 2.0 to 2.10, or a later one with these fields, into `to`. Fields that a version lacks are
/// unknown. Errors: corrupt, with the entry and the field.
caf::error read_flight_recorder_dump(parsed_dump& dump, file_evidence& to);

} // namespace ringmaster::diagnosis
