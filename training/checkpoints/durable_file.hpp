#pragma once

#include "messages/errc.hpp"

#include <caf/error.hpp>

#include <cstddef>
#include <filesystem>
#include <span>

namespace ringmaster::training {

/// What a file is called that is not whole yet: its name and this.
inline constexpr auto draft_suffix = ".part";

/// The code of a write that failed with this errno: no_space where a larger disk, quota or file size limit would help,
/// else io_error.
errc write_failure(int code);

/// Writes the pieces one behind the other, in place of what the file held. When this returns without an error, they are
/// on the disk; until then, whatever happens, the file is as it was: they are written beside it, synced, and take its
/// name, which is synced as well. One writer at a time. Errors: no_space, io_error, with what the system said.
caf::error write_durably(const std::filesystem::path& file, std::span<const std::span<const std::byte>> pieces);

} // namespace ringmaster::training
