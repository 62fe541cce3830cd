#include "actors/hosts/flight_recorder.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_text.hpp"

#include <array>
#include <mutex>

namespace ringmaster {

struct flight_recorder::ring {
  mutable std::mutex guard;
  std::array<proto::Record, records_max> records; ///< Reused: a copy into one that is as large allocates nothing.
  size_t noted = 0;                               ///< Since the start.
};

flight_recorder::flight_recorder() : ring_(std::make_unique<ring>()) {}

flight_recorder::~flight_recorder() = default;

flight_recorder& flight_recorder::instance() {
  static auto* recorder = [] {
    auto* made = new flight_recorder; // never destroyed: a process may abort while it ends
    report_before_abort([made] { return made->text(); });
    return made;
  }();
  return *recorder;
}

void flight_recorder::note(const proto::Record& record) {
  std::scoped_lock lock{ring_->guard};
  ring_->records[ring_->noted++ % records_max] = record;
}

std::string flight_recorder::text() const {
  std::unique_lock lock{ring_->guard, std::try_to_lock};
  if (!lock || ring_->noted == 0)
    return {};
  std::string result = "the journal's last records:";
  for (auto i = ring_->noted > records_max ? ring_->noted - records_max : 0; i < ring_->noted; ++i)
    result += "\n  " + text_of(ring_->records[i % records_max]);
  return result;
}

} // namespace ringmaster
