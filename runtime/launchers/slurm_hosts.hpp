#pragma once

#include <caf/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

// The syntax of SLURM's environment variables. Errors: invalid_argument, with the text and the reason.

/// More hosts are refused: a range such as [1-999999999] is a typing error.
constexpr size_t slurm_hosts_max = 65'536;

/// SLURM_JOB_NODELIST and similar: "a[1-3,7],b" is a1 a2 a3 a7 b; "r[1-2]n[08-10]" has two ranges and keeps its zeroes.
caf::expected<std::vector<std::string>> slurm_hosts(std::string_view text);

/// SLURM_TASKS_PER_NODE: "2(x3),1" is 2 2 2 1.
caf::expected<std::vector<uint32_t>> slurm_tasks(std::string_view text);

} // namespace ringmaster
