// Messages between the actors of a training run survive serialization.
#include "actors/training/messages.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/sec.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace ringmaster::training;

namespace {

template <class Message>
Message across(Message x) {
  std::vector<char> wire;
  caf::binary_serializer sink{nullptr, wire};
  REQUIRE(!sink(x));
  Message result;
  caf::binary_deserializer source{nullptr, wire};
  REQUIRE(!source(result));
  return result;
}

} // namespace

TEST_CASE("training messages: all fields arrive") {
  rank_ended ended;
  ended.rank = 3;
  ended.strays_at = 2;
  ended.bytes_peak = 17;
  CHECK(across(ended).strays_at == 2);
  CHECK(across(ended).bytes_peak == 17);
  step_order order;
  order.sides = {{.tp = 2, .dp = 3, .shard_ranks = 4}, true};
  order.forget = true;
  CHECK(across(order).sides == step_setting{{.tp = 2, .dp = 3, .shard_ranks = 4}, true});
  CHECK(across(order).forget);
  rank_ready ready;
  ready.settings = {"seed 1", "strategy ddp"};
  CHECK(across(ready).settings == ready.settings);
  CHECK(!across(ready).problem);
  ready.problem = ringmaster::make_error(ringmaster::errc::out_of_memory, "no room");
  CHECK(ringmaster::code_of(across(ready).problem) == ringmaster::errc::out_of_memory);
  CHECK(ringmaster::render(across(ready).problem) == "no room");
  rank_failed failed;
  failed.why = caf::sec::request_timeout; // CAF's own error arrives as one of ours
  CHECK(ringmaster::code_of(across(failed).why) == ringmaster::errc::timed_out);
  CHECK(ringmaster::render(across(failed).why) == "no answer in time");
  rank_arrival arrival;
  arrival.what = op::reduce_scatter;
  arrival.asked = form::columns;
  arrival.count = 5;
  CHECK(across(arrival).what == op::reduce_scatter);
  CHECK(across(arrival).asked == form::columns);
  CHECK(across(arrival).count == 5);
}
