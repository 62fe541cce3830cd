#include "training/pictures/train_trace.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/trace_events.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace ringmaster {

using namespace training;

namespace {

constexpr int picosecond_decimals = 6;

/// A step is a process; a rank has a track for each of its two streams.
trace_events::track track_of(size_t process, uint32_t rank, bool second_stream) {
  return {process, 2 * uint64_t{rank} + (second_stream ? 1 : 0)};
}

/// A unit of time other than a second is shown as a millisecond. Clocks of measured ranks may differ slightly: no time
/// is before the start.
double trace_us(double time, const cost_model& costs) {
  return std::max(time, 0.) * (costs.time_unit() == "s" ? 1e6 : 1e3);
}

void write_operation(trace_events& trace, size_t process, std::string_view row, const event& x,
                     const cost_model& costs) {
  json_value args{{"layer", x.layer}};
  if (x.samples.count() > 0)
    args.update({{"first_sample", x.samples.begin}, {"samples", x.samples.count()}});
  if (!x.aside)
    args["memory"] = x.memory;
  const auto start = trace_us(x.start, costs);
  trace.slice(track_of(process, x.rank, x.aside), {}, name_of(x.what), start, trace_us(x.duration, costs), args);
  if (!x.aside)
    trace.counter(process, fmt::format("memory of {} {}", row, x.rank), start, costs.memory_unit(), x.memory);
}

/// Matches sends and receives: between two ranks, the k-th receive belongs to the k-th send, in any order of events.
class arrow_numbers {
public:
  explicit arrow_numbers(uint64_t last) : last_(last) {}

  uint64_t of(const event& x) {
    const bool sends = x.what == op::send;
    auto& found = ways_[sends ? std::pair{x.rank, x.peer} : std::pair{x.peer, x.rank}];
    const auto index = (sends ? found.sends : found.receives)++;
    if (index == found.numbers.size())
      found.numbers.push_back(++last_);
    return found.numbers[index];
  }

private:
  struct way {
    std::vector<uint64_t> numbers;
    size_t sends = 0, receives = 0;
  };
  std::map<std::pair<uint32_t, uint32_t>, way> ways_; ///< By sender and receiver.
  uint64_t last_;
};

/// One end of an arrow from the start of a send to the end of its receive, where it still lies within the slice.
void write_arrow(trace_events& trace, size_t process, const event& x, uint64_t id, const cost_model& costs) {
  const auto where = track_of(process, x.rank, x.aside);
  if (x.what == op::send)
    trace.flow_start(where, "sent", id, trace_us(x.start, costs));
  else
    trace.flow_finish(where, "sent", id, trace_us(x.start, costs) + 0.999 * trace_us(x.duration, costs));
}

/// An estimate of the whole trace's size, from events spread evenly over the step.
uint64_t bytes_of_trace(const training_outcome& found, const cost_model& costs) {
  constexpr size_t sampled = 1000;
  const auto step = std::max<size_t>(found.events.size() / sampled, 1);
  trace_events trace{picosecond_decimals};
  uint64_t count = 0;
  for (size_t i = 0; i < found.events.size(); i += step, ++count) {
    const auto& x = found.events[i];
    write_operation(trace, 1, "rank", x, costs);
    if (x.what == op::send || x.what == op::receive)
      write_arrow(trace, 1, x, i, costs);
  }
  return trace.bytes() * found.events.size() / std::max<uint64_t>(count, 1);
}

/// A step as a process of the trace. Errors: those of `trace_of`.
caf::error write_step(trace_events& trace, size_t process, const traced_step& step, uint64_t bytes_max) {
  const auto& found = *step.found;
  const auto& costs = *step.costs;
  trace.name_process(process, step.name);
  arrow_numbers arrows{(process - 1) << 32};
  for (uint32_t rank = 0; rank < found.ranks.size(); ++rank)
    for (bool second : {false, true})
      if (!second || found.ranks[rank].aside > 0)
        trace.name_thread(track_of(process, rank, second),
                          fmt::format("{} {}{}", step.row, rank, second ? ", second stream" : ""));
  for (auto& x : found.events) {
    ensure(x.rank < found.ranks.size(), "an event is of a rank of its step");
    write_operation(trace, process, step.row, x, costs);
    if (trace.bytes() > bytes_max)
      return make_error(errc::out_of_range,
                        fmt::format("the trace of {} operations on {} ranks would take about {}, over the limit of {}: "
                                    "take fewer ranks, layers or micro-batches, or a higher limit",
                                    found.events.size(), found.ranks.size(), bytes_text(bytes_of_trace(found, costs)),
                                    bytes_text(bytes_max)));
    if (x.what == op::send || x.what == op::receive)
      write_arrow(trace, process, x, arrows.of(x), costs);
  }
  return caf::none;
}

} // namespace

caf::expected<std::string> trace_of(std::span<const traced_step> steps, uint64_t bytes_max) {
  trace_events trace{picosecond_decimals};
  for (size_t i = 0; i < steps.size(); ++i) {
    ensure(steps[i].found != nullptr && steps[i].costs != nullptr, "a traced step has an outcome and costs");
    RETURN_ERROR(write_step(trace, i + 1, steps[i], bytes_max));
  }
  return trace.take();
}

caf::expected<std::string> trace_of(const training_outcome& found, const cost_model& costs, uint64_t bytes_max) {
  const traced_step one{"ranks", &found, &costs};
  return trace_of({&one, 1}, bytes_max);
}

} // namespace ringmaster
