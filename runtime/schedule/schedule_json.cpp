#include "runtime/schedule/schedule_json.hpp"

#include "messages/try.hpp"
#include "runtime/schedule/schedule_check.hpp"
#include "runtime/text/json_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <iterator>

namespace ringmaster {

namespace {

constexpr std::array<std::string_view, 3> buffer_names{"input", "output", "scratch"};
constexpr std::array<std::string_view, 6> action_names{"send", "recv", "recv_reduce", "copy", "reduce", "fold"};

// The writer formats text itself, with spaces and a line for each step, since people read and edit these files. No name
// in them needs an escape.

void append(std::string& text, std::string_view key, const block_range& x) {
  fmt::format_to(std::back_inserter(text), R"(, "{}": ["{}", {}, {}])", key, buffer_names[static_cast<size_t>(x.where)],
                 x.offset, x.count);
}

void append(std::string& text, const step& x) {
  auto to = std::back_inserter(text);
  fmt::format_to(to, R"({{"round": {}, "do": "{}")", x.round, action_names[static_cast<size_t>(x.what)]);
  if (!is_local(x))
    fmt::format_to(to, R"(, "peer": {})", x.peer);
  if (reads_own(x))
    append(text, x.what == action::recv_reduce ? "own" : "from", x.source);
  if (writes(x))
    append(text, "to", x.destination);
  if (x.finish)
    text += R"(, "finish": true)";
  if (x.then)
    text += R"(, "then": true)";
  text += '}';
}

caf::expected<block_range> range_in(const json_field& field) {
  TRY(parts, field.list());
  if (parts->size() != 3)
    return field.wrong(R"(["input", "output" or "scratch", first element, number of elements])");
  auto where = (*parts)[0].one_of(buffer_names);
  auto offset = (*parts)[1].number(json_field::exact_max);
  auto count = (*parts)[2].number(json_field::exact_max);
  for (auto* part : {&offset, &count})
    if (!*part)
      return std::move(part->error());
  if (!where)
    return std::move(where.error());
  return block_range{static_cast<buffer>(*where), *offset, *count};
}

caf::expected<step> step_in(const json_field& field, uint32_t rank) {
  TRY(what, field.at("do").one_of(action_names));
  step result{.what = static_cast<action>(*what), .peer = rank};
  // What each action has.
  std::vector<std::string_view> keys{"round", "do"};
  if (!is_local(result))
    keys.push_back("peer");
  auto source = result.what == action::recv_reduce ? "own" : "from";
  if (reads_own(result))
    keys.push_back(source);
  if (writes(result))
    keys.insert(keys.end(), {"to", "finish"});
  keys.push_back("then");
  auto problem = field.check_keys(keys);
  auto read = [&](auto& target, auto value) {
    if (!value && !problem)
      problem = std::move(value.error());
    if (value && !problem)
      target = static_cast<std::decay_t<decltype(target)>>(*value);
  };
  read(result.round, field.at("round").number(UINT32_MAX));
  if (!is_local(result))
    read(result.peer, field.at("peer").number(UINT32_MAX));
  if (reads_own(result))
    read(result.source, range_in(field.at(source)));
  if (writes(result))
    read(result.destination, range_in(field.at("to")));
  read(result.finish, field.at("finish").flag());
  read(result.then, field.at("then").flag());
  if (problem)
    return problem;
  return result;
}

caf::expected<schedule> schedule_in(const json_field& field, uint32_t rank) {
  RETURN_ERROR(field.check_keys({"rounds", "scratch", "steps"}));
  auto rounds = field.at("rounds").number(UINT32_MAX);
  auto scratch = field.at("scratch").number(json_field::exact_max, 0);
  for (auto* value : {&rounds, &scratch})
    if (!*value)
      return std::move(value->error());
  TRY(steps, field.at("steps").list());
  schedule result{static_cast<uint32_t>(*rounds), *scratch, {}};
  for (size_t i = 0; i < steps->size(); ++i) {
    TRY(next, step_in((*steps)[i].named(fmt::format("rank {}, step {}", rank, i)), rank));
    result.steps.push_back(*next);
  }
  return result;
}

caf::error read_request(const json_field& file, schedule_set& result) {
  RETURN_ERROR(file.check_keys({"kind", "ranks", "count", "counts", "root", "peer", "schedules"}));
  TRY(kind_name, file.at("kind").text());
  auto kind = parse_collective_kind(*kind_name);
  if (!kind)
    return invalid("\"kind\": " + render(kind.error()));
  result.kind = *kind;
  auto world_size = file.at("ranks").number(UINT32_MAX);
  auto count = file.at("count").number(json_field::exact_max, 0);
  auto root = file.at("root").number(UINT32_MAX, 0);
  auto peer = file.at("peer").number(UINT32_MAX, 0);
  for (auto* value : {&world_size, &count, &root, &peer})
    if (!*value)
      return std::move(value->error());
  result.request = {.world_size = static_cast<uint32_t>(*world_size),
                    .count = *count,
                    .root = static_cast<uint32_t>(*root),
                    .peer = static_cast<uint32_t>(*peer)};
  if (file.at("counts").exists()) {
    TRY(counts, file.at("counts").list());
    for (auto& each : *counts) {
      TRY(value, each.number(json_field::exact_max));
      result.request.counts.push_back(*value);
    }
  }
  return check_request(result.kind, result.request);
}

} // namespace

std::string to_json(const schedule_set& all) {
  auto text = fmt::format(R"({{"kind": "{}", "ranks": {}, "count": {})", name_of(all.kind), all.request.world_size,
                          all.request.count);
  if (!all.request.counts.empty())
    text += fmt::format(R"(, "counts": [{}])", fmt::join(all.request.counts, ", "));
  if (has_root(all.kind))
    text += fmt::format(R"(, "root": {})", all.request.root);
  if (all.kind == proto::SEND_RECV)
    text += fmt::format(R"(, "peer": {})", all.request.peer);
  text += R"(, "schedules": [)";
  for (const auto& x : all.ranks) {
    text += &x == &all.ranks.front() ? "\n  " : ",\n  ";
    text += fmt::format(R"({{"rounds": {}, "scratch": {}, "steps": [)", x.rounds, x.scratch_count);
    for (const auto& each : x.steps) {
      text += &each == &x.steps.front() ? "\n    " : ",\n    ";
      append(text, each);
    }
    text += "]}";
  }
  return text + "]}\n";
}

caf::expected<schedule_set> parse_schedules(std::string_view json) {
  TRY(value, parse_json(json));
  json_field file{"the file", *value};
  schedule_set result;
  RETURN_ERROR(read_request(file, result));
  TRY(ranks, file.at("schedules").list());
  if (ranks->size() != result.request.world_size)
    return file.at("schedules").wrong(fmt::format("a list of {}, one for each rank", result.request.world_size));
  for (uint32_t rank = 0; rank < ranks->size(); ++rank) {
    TRY(next, schedule_in((*ranks)[rank].named(fmt::format("rank {}", rank)), rank));
    result.ranks.push_back(std::move(*next));
  }
  return result;
}

} // namespace ringmaster
