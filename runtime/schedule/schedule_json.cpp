#include "runtime/schedule/schedule_json.hpp"

#include "runtime/schedule/schedule_check.hpp"
#include "runtime/text/json/json_place.hpp"
#include "runtime/text/json/json_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace ringmaster {

namespace {

constexpr std::array<std::string_view, 3> buffer_names{"input", "output", "scratch"};
constexpr std::array<std::string_view, 6> action_names{"send", "recv", "recv_reduce", "copy", "reduce", "fold"};

void write_json(json_writer& json, std::string_view key, const block_range& x) {
  json.list(key).value(buffer_names[static_cast<size_t>(x.where)]).value(x.offset).value(x.count).end();
}

void write_json(json_writer& json, const step& x) {
  json.object().member("round", x.round).member("do", action_names[static_cast<size_t>(x.what)]);
  if (!is_local(x))
    json.member("peer", x.peer);
  if (reads_own(x))
    write_json(json, x.what == action::recv_reduce ? "own" : "from", x.source);
  if (writes(x))
    write_json(json, "to", x.destination);
  if (x.finish)
    json.member("finish", true);
  if (x.then)
    json.member("then", true);
  json.end();
}

caf::expected<block_range> range_in(const json_place& place) {
  auto parts = place.list();
  if (!parts)
    return std::move(parts.error());
  if (parts->size() != 3)
    return place.wrong(R"(["input", "output" or "scratch", first element, number of elements])");
  auto where = (*parts)[0].one_of(buffer_names);
  auto offset = (*parts)[1].number(json_place::exact_max);
  auto count = (*parts)[2].number(json_place::exact_max);
  for (auto* part : {&offset, &count})
    if (!*part)
      return std::move(part->error());
  if (!where)
    return std::move(where.error());
  return block_range{static_cast<buffer>(*where), *offset, *count};
}

caf::expected<step> step_in(const json_place& place, uint32_t rank) {
  auto what = place.at("do").one_of(action_names);
  if (!what)
    return std::move(what.error());
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
  auto problem = place.check_keys(keys);
  auto read = [&](auto& target, auto value) {
    if (!value && !problem)
      problem = std::move(value.error());
    if (value && !problem)
      target = static_cast<std::decay_t<decltype(target)>>(*value);
  };
  read(result.round, place.at("round").number(UINT32_MAX));
  if (!is_local(result))
    read(result.peer, place.at("peer").number(UINT32_MAX));
  if (reads_own(result))
    read(result.source, range_in(place.at(source)));
  if (writes(result))
    read(result.destination, range_in(place.at("to")));
  read(result.finish, place.at("finish").flag());
  read(result.then, place.at("then").flag());
  if (problem)
    return problem;
  return result;
}

caf::expected<schedule> schedule_in(const json_place& place, uint32_t rank) {
  if (auto problem = place.check_keys({"rounds", "scratch", "steps"}))
    return problem;
  auto rounds = place.at("rounds").number(UINT32_MAX);
  auto scratch = place.at("scratch").number(json_place::exact_max, 0);
  for (auto* value : {&rounds, &scratch})
    if (!*value)
      return std::move(value->error());
  auto steps = place.at("steps").list();
  if (!steps)
    return std::move(steps.error());
  schedule result{static_cast<uint32_t>(*rounds), *scratch, {}};
  for (size_t i = 0; i < steps->size(); ++i) {
    auto next = step_in((*steps)[i].named(fmt::format("rank {}, step {}", rank, i)), rank);
    if (!next)
      return std::move(next.error());
    result.steps.push_back(*next);
  }
  return result;
}

caf::error read_request(const json_place& file, schedule_set& result) {
  if (auto problem = file.check_keys({"kind", "ranks", "count", "counts", "root", "peer", "schedules"}))
    return problem;
  auto kind_name = file.at("kind").text();
  if (!kind_name)
    return std::move(kind_name.error());
  auto kind = parse_collective_kind(*kind_name);
  if (!kind)
    return file.at("kind").refused(render(kind.error()));
  result.kind = *kind;
  auto world_size = file.at("ranks").number(UINT32_MAX);
  auto count = file.at("count").number(json_place::exact_max, 0);
  auto root = file.at("root").number(UINT32_MAX, 0);
  auto peer = file.at("peer").number(UINT32_MAX, 0);
  for (auto* value : {&world_size, &count, &root, &peer})
    if (!*value)
      return std::move(value->error());
  result.request = {.world_size = static_cast<uint32_t>(*world_size),
                    .count = *count,
                    .root = static_cast<uint32_t>(*root),
                    .peer = static_cast<uint32_t>(*peer)};
  if (file.at("counts").is_there()) {
    auto counts = file.at("counts").list();
    if (!counts)
      return std::move(counts.error());
    for (auto& each : *counts) {
      auto value = each.number(json_place::exact_max);
      if (!value)
        return std::move(value.error());
      result.request.counts.push_back(*value);
    }
  }
  return check_request(result.kind, result.request);
}

} // namespace

std::string to_json(const schedule_set& all) {
  json_writer json{json_writer::style::spaced};
  json.object().member("kind", name_of(all.kind)).member("ranks", all.request.world_size);
  json.member("count", all.request.count);
  if (!all.request.counts.empty()) {
    json.list("counts");
    for (auto count : all.request.counts)
      json.value(count);
    json.end();
  }
  if (has_root(all.kind))
    json.member("root", all.request.root);
  if (all.kind == proto::SEND_RECV)
    json.member("peer", all.request.peer);
  json.list("schedules");
  for (const auto& x : all.ranks) {
    json.line(2).object().member("rounds", x.rounds).member("scratch", x.scratch_count).list("steps");
    for (const auto& each : x.steps)
      write_json(json.line(4), each);
    json.end().end();
  }
  return json.end().end().take() + "\n";
}

caf::expected<schedule_set> parse_schedules(std::string_view json) {
  auto value = parse_json(json);
  if (!value)
    return std::move(value.error());
  json_place file{"the file", json, *value};
  schedule_set result;
  if (auto problem = read_request(file, result))
    return problem;
  auto ranks = file.at("schedules").list();
  if (!ranks)
    return std::move(ranks.error());
  if (ranks->size() != result.request.world_size)
    return file.at("schedules").wrong(fmt::format("a list of {}, one for each rank", result.request.world_size));
  for (uint32_t rank = 0; rank < ranks->size(); ++rank) {
    auto next = schedule_in((*ranks)[rank].named(fmt::format("rank {}", rank)), rank);
    if (!next)
      return std::move(next.error());
    result.ranks.push_back(std::move(*next));
  }
  return result;
}

} // namespace ringmaster
