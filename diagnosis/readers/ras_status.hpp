#pragma once

#include "diagnosis/readers/dump_tree.hpp"
#include "diagnosis/readers/file_evidence.hpp"

#include <string_view>

namespace ringmaster::diagnosis {

/// Whether the text is what `ncclras` prints (NCCL 2.24 and later).
bool is_ras_text(std::string_view text);
/// Reads that text. It names individual ranks only if they are few; communicators without a rank named are skipped.
void read_ras_text(std::string_view text, file_evidence& to);

/// Whether the value is the status that `ncclras -f json` prints.
bool is_ras_json(const parsed_dump& dump);
/// Reads that status, which has every rank. Errors: corrupt, with the communicator and the field.
caf::error read_ras_json(const parsed_dump& dump, file_evidence& to);

} // namespace ringmaster::diagnosis
