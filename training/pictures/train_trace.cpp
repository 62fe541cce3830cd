#include "training/pictures/train_trace.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace ringmaster {

using namespace training;

namespace {

/// A rank has a track for each stream.
uint32_t track_of(uint32_t rank, bool aside) {
  return 2 * rank + (aside ? 1 : 0);
}

/// Microseconds of a trace; a unit that is no second is a millisecond there.
double trace_us(double time, const cost_model& costs) {
  return time * (costs.time_unit() == "s" ? 1e6 : 1e3);
}

/// Names a rank's track.
void name_track(json_writer& json, size_t process, std::string_view row, uint32_t rank, bool aside) {
  json.line().object().member("name", "thread_name").member("ph", "M").member("pid", process);
  json.member("tid", track_of(rank, aside)).object("args");
  json.member("name", fmt::format("{} {}{}", row, rank, aside ? ", second stream" : "")).end().end();
}

void write_operation(json_writer& json, size_t process, std::string_view row, const event& x, const cost_model& costs) {
  json.line().object().member("name", name_of(x.what)).member("ph", "X").member("pid", process);
  json.member("tid", track_of(x.rank, x.aside)).key("ts").fixed(trace_us(x.start, costs), 6);
  json.key("dur").fixed(trace_us(x.duration, costs), 6).object("args").member("layer", x.layer);
  if (x.samples.count() > 0)
    json.member("first_sample", x.samples.begin).member("samples", x.samples.count());
  if (x.aside) {
    json.end().end();
    return;
  }
  json.member("memory", x.memory).end().end();
  json.line()
    .object()
    .member("name", fmt::format("memory of {} {}", row, x.rank))
    .member("ph", "C")
    .member("pid", process);
  json.key("ts").fixed(trace_us(x.start, costs), 6).object("args").member(costs.memory_unit(), x.memory).end().end();
}

/// Which send a receive is of: between two ranks the k-th of the k-th, in whichever order they are listed.
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

/// An end of an arrow, from where a send begins to where its receive ends: still within the slice, or it had no place.
void write_arrow(json_writer& json, size_t process, const event& x, uint64_t id, const cost_model& costs) {
  const bool sends = x.what == op::send;
  json.line().object().member("name", "sent").member("cat", "sent").member("ph", sends ? "s" : "f").member("id", id);
  json.member("pid", process).member("tid", track_of(x.rank, x.aside)).key("ts");
  json.fixed(trace_us(x.start, costs) + (sends ? 0 : 0.999 * trace_us(x.duration, costs)), 6);
  if (!sends)
    json.member("bp", "e");
  json.end();
}

/// What the whole would take, whoever asks: by events from everywhere.
uint64_t bytes_of_trace(const training_outcome& found, const cost_model& costs) {
  constexpr size_t sampled = 1000;
  const auto step = std::max<size_t>(found.events.size() / sampled, 1);
  json_writer json;
  json.list();
  uint64_t count = 0;
  for (size_t i = 0; i < found.events.size(); i += step, ++count) {
    const auto& x = found.events[i];
    write_operation(json, 1, "rank", x, costs);
    if (x.what == op::send || x.what == op::receive)
      write_arrow(json, 1, x, i, costs);
  }
  return json.size() * found.events.size() / std::max<uint64_t>(count, 1);
}

/// A step as a process of the trace. Errors: as of `trace_of`.
caf::error write_step(json_writer& json, size_t process, const traced_step& step, uint64_t bytes_max) {
  const auto& found = *step.found;
  const auto& costs = *step.costs;
  json.line().object().member("name", "process_name").member("ph", "M").member("pid", process);
  json.object("args").member("name", step.name).end().end();
  arrow_numbers arrows{(process - 1) << 32};
  for (uint32_t rank = 0; rank < found.ranks.size(); ++rank)
    for (bool aside : {false, true})
      if (!aside || found.ranks[rank].aside > 0)
        name_track(json, process, step.row, rank, aside);
  for (auto& x : found.events) {
    write_operation(json, process, step.row, x, costs);
    if (json.size() > bytes_max)
      return make_error(errc::out_of_range,
                        fmt::format("the trace of {} operations on {} ranks would take some {}, and at most {} were "
                                    "asked for: take fewer ranks, layers or micro-batches, or a higher limit",
                                    found.events.size(), found.ranks.size(), bytes_text(bytes_of_trace(found, costs)),
                                    bytes_text(bytes_max)));
    if (x.what == op::send || x.what == op::receive)
      write_arrow(json, process, x, arrows.of(x), costs);
  }
  return caf::none;
}

} // namespace

caf::expected<std::string> trace_of(std::span<const traced_step> steps, uint64_t bytes_max) {
  json_writer json;
  json.object().list("traceEvents");
  for (size_t i = 0; i < steps.size(); ++i)
    if (auto problem = write_step(json, i + 1, steps[i], bytes_max))
      return problem;
  return json.line().end().end().take() + "\n";
}

caf::expected<std::string> trace_of(const training_outcome& found, const cost_model& costs, uint64_t bytes_max) {
  const traced_step one{"ranks", &found, &costs};
  return trace_of({&one, 1}, bytes_max);
}

} // namespace ringmaster
