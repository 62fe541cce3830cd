#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace ringmaster {

/// Calls `work`, which writes to the streams and returns an exit status. If output was lost, such as on a full disk,
/// reports it on `err` and returns `failed_status` instead of 0.
int with_whole_output(const std::string& who, std::FILE* out, std::FILE* err, int failed_status,
                      const std::function<int()>& work);

} // namespace ringmaster
