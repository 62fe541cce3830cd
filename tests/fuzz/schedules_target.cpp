// Schedule files: read, checked and written again.
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/schedule_check.hpp"
#include "runtime/schedule/schedule_json.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

void read_schedules(std::string_view bytes) {
  const auto read = parse_schedules(bytes);
  if (!read)
    return;
  for (uint32_t rank = 0; rank < read->ranks.size(); ++rank)
    (void)check_schedule(rank, read->request.world_size, read->ranks[rank], {read->request.count, read->request.count});
  const auto text = to_json(*read);
  const auto again = parse_schedules(text);
  ensure(again && to_json(*again) == text, "a schedule file that was written is read as it was");
}

const fuzz_target fuzz_schedules{"schedules", read_schedules};

} // namespace

} // namespace ringmaster::fuzz
