#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace ringmaster {

/// Does `work`, which writes to the streams and returns an exit status; then says on `err` where not all of `out` has
/// been written, and returns `failed_status` in place of 0: what reads a disk that is full must not take half for all.
int with_whole_output(const std::string& who, std::FILE* out, std::FILE* err, int failed_status,
                      const std::function<int()>& work);

} // namespace ringmaster
