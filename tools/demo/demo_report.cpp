// The parts of the demo that show what has happened: the moment of the crash, the table, the log.
#include "tools/demo/demo.hpp"

#include "actors/calls/answers.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ringmaster {

caf::error demo::tell_events(const group& g, uint64_t since_ns) {
  TRY(records, user_.journal_tail(500));
  auto good = [&](const std::string& text) { return term_.good(text); };
  auto bad = [&](const std::string& text) { return term_.bad(text); };
  auto plain = [](const std::string& text) { return text; };
  std::vector<std::pair<uint64_t, std::string>> lines; // by when it happened: a report may be written later
  auto tell = [&](const proto::Record& x, auto painted, const std::string& text, uint64_t when_ns = 0) {
    lines.emplace_back(when_ns == 0 ? x.time_ns() : when_ns, painted(term_.fitted(text, 19)));
  };
  for (auto& x : *records) {
    if (x.time_ns() < since_ns)
      continue;
    if (x.has_operation_started() && x.operation_started().comm_id() == g.comm.commid())
      tell(x, plain,
           fmt::format("the all-reduce starts on {}, epoch {}", counted(x.operation_started().world_size(), "device"),
                       x.operation_started().epoch()));
    else if (x.has_fault_injected())
      tell(x, bad, fmt::format("device 0x{:x} dies: {}", x.fault_injected().device_id(), x.fault_injected().what()));
    else if (x.has_device_died())
      tell(x, plain,
           fmt::format("noticed by {}: device 0x{:x} is gone", x.device_died().noticed_by(),
                       x.device_died().device_id()),
           x.device_died().noticed_ns());
    else if (x.has_device_joined())
      tell(x, plain,
           fmt::format("its supervisor starts a new one, device 0x{:x}, for later communicators",
                       x.device_joined().metadata().deviceid().value()));
    else if (x.has_epoch_opened())
      tell(x, plain,
           fmt::format("epoch {} opens on {}; the all-reduce {}", x.epoch_opened().epoch(),
                       counted(static_cast<uint64_t>(x.epoch_opened().device_ids_size()), "device"),
                       x.epoch_opened().rerun_size() > 0 ? "runs again" : "was complete"));
    else if (x.has_operation_ended() && x.operation_ended().comm_id() == g.comm.commid())
      tell(x, good,
           fmt::format("the all-reduce has ended, attempt {}: {}", x.operation_ended().attempts(),
                       gpu_sim::Status_Name(x.operation_ended().status())));
  }
  std::stable_sort(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& [when_ns, text] : lines) {
    auto ms = (static_cast<double>(when_ns) - static_cast<double>(since_ns)) / 1e6;
    fmt::print("     {} {}\n", term_.dim(fmt::format("{:+9.2f} ms", ms)), text);
  }
  return caf::none;
}

caf::expected<double> demo::measure(group& g, const std::string& algorithm, uint64_t count) {
  constexpr int runs = 7;
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    auto start = steady::now();
    RETURN_ERROR(enqueue(g, algorithm, count, true));
    TRY(status, user_.wait(id_of(g.comm), std::chrono::seconds{60}));
    if (status->status() != gpu_sim::SUCCESS)
      return error_in(*status);
    note_alive(g, *status);
    if (i >= 2)
      times.push_back(ms_since(start) * 1000);
  }
  auto right_one = expected(g, count);
  for (auto rank : g.alive) {
    TRY(found, user_.copy_to_host(g.device(rank), g.address(rank) + bytes(), count * sizeof(double)));
    if (count > 0 && std::memcmp(found->data(), right_one.data(), found->size()) != 0)
      return malformed(fmt::format("{} of {} elements: rank {} has a wrong result", algorithm, count, rank));
  }
  ensure(times.size() == runs, "each run but the warm-ups counts");
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

caf::error demo::compare_algorithms() {
  headline(fmt::format("Naive against ring, {} devices, medians of 7, results checked", options_.devices));
  TRY(g, set_up());
  measured_ = g->comm.commid();
  fmt::print("   {:>12}  {:<9} {:>12} {:>12} {:>12}\n", "size", "algorithm", "time us", "algbw GB/s", "busbw GB/s");
  std::vector<uint64_t> counts;
  for (auto divisor : {512, 32, 1})
    if (options_.elements / divisor > 0)
      counts.push_back(options_.elements / divisor);
  for (auto count : counts)
    for (auto algorithm : {"naive", "ring"}) {
      TRY(time_us, measure(*g, algorithm, count));
      auto algbw = static_cast<double>(count * sizeof(double)) / *time_us / 1e3;
      auto busbw = algbw * 2 * (g->size() - 1) / g->size();
      fmt::print("   {:>12}  {:<9} {:>12.1f} {:>12.2f} {:>12.2f}\n", bytes_text(count * sizeof(double)), algorithm,
                 *time_us, algbw, busbw);
    }
  fmt::print("   algbw: bytes of a rank / time; busbw: what each device's link carries, algbw x 2 (n - 1) / n\n\n");
  return give_back();
}

caf::error demo::last_lines() {
  constexpr size_t lines_max = 12;
  headline("The last lines of the log, but for copies and each rank's reports");
  RETURN_ERROR(user_.journal_flush());
  TRY(records, user_.journal_tail(1000));
  std::erase_if(*records, [&](auto& x) {
    bool measured = (x.has_operation_ended() && x.operation_ended().comm_id() == measured_)
                    || (x.has_operation_started() && x.operation_started().comm_id() == measured_)
                    || (x.has_operation_enqueued() && x.operation_enqueued().request().comm_id() == measured_);
    return x.has_command_ended() || x.has_rank_ended() || measured;
  });
  if (records->size() > lines_max)
    records->erase(records->begin(), records->end() - lines_max);
  for (auto& x : *records)
    fmt::print("   {}\n", term_.fitted(text_of(x), 3));
  return caf::none;
}

} // namespace ringmaster
