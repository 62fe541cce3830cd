#pragma once

#include "messages/errc.hpp"
#include "messages/interfaces.hpp"
#include "training/computed/exchange_desk.hpp"
#include "training/computed/kept_values.hpp"
#include "training/computed/step_world.hpp"
#include "training/layers/softmax_loss.hpp"
#include "training/simulated/simulator.hpp"

#include <caf/meta/type_name.hpp>

// The messages between the actors of a training run. `attempt` counts the attempts at all steps, from 1: messages of an
// older attempt are dropped.

namespace ringmaster::training {

/// RANK -> TRAINER: this rank is ready, or cannot take part.
struct rank_ready {
  device_id device;
  uint32_t place = 0;                ///< As in rank_settings.
  caf::error problem;                ///< Why it cannot take part; none: it is ready.
  std::vector<std::string> settings; ///< As in trainer_settings.
};

/// TRAINER -> RANK: start this step, as this rank of a world of this size.
struct step_order {
  uint64_t attempt = 0;
  uint64_t step = 0;
  uint32_t rank = 0;
  uint32_t world_size = 0;
  step_setting sides;
  bool profiles = false; ///< The time of each operation is wanted.
  bool forget = false;   ///< Its parts of the model are of no use: all parts come from elsewhere.
};

/// RANK -> TRAINER: this rank has arrived at a communication, with this value.
struct rank_arrival {
  uint64_t attempt = 0;
  uint64_t number = 0;
  op what{};
  bool aside = false;
  uint32_t rank = 0;
  uint32_t peer = 0;
  group among{};
  value_tag argument;
  form asked = form::whole; ///< See `shown`.
  uint64_t count = 0;
  uint64_t input = 0;
  uint64_t output = 0;
};

/// TRAINER -> RANK: allocate memory for this value, which is about to arrive. The answer is a room_found.
struct room_wanted {
  uint64_t attempt = 0;
  uint64_t number = 0;
  value_tag what;
};
struct room_found {
  uint64_t attempt = 0;
  uint64_t number = 0;
  uint32_t rank = 0;
  uint64_t address = 0;
};

/// TRAINER -> RANK: the communication has finished, with this result.
struct exchange_ended {
  uint64_t attempt = 0;
  uint64_t number = 0;
  value_tag result;
  double ended = 0; ///< In seconds, by the clock of the trainer's process.
};

/// RANK -> TRAINER: this rank lacks a part of the model before the step, and has memory for it at this address. The
/// answer is a part_found.
struct part_wanted {
  uint64_t attempt = 0;
  uint32_t rank = 0;
  kept_part what;
  uint64_t address = 0;
};
/// Without bytes: the part was broadcast to that address.
struct part_found {
  uint64_t attempt = 0;
  kept_part what;
  byte_block data;
};

/// TRAINER -> RANK: at which address is this part, for other ranks of the step? 0: the rank does not have it.
struct part_sought {
  uint64_t attempt = 0;
  kept_part what;
};

/// TRAINER -> RANK: send this part of the model as it was before that step. No bytes: the rank does not have it.
struct part_request {
  uint64_t step = 0;
  kept_part what;
};

/// RANK -> TRAINER: this rank computes, and has sent nothing for a while.
struct rank_alive {
  uint64_t attempt = 0;
  uint32_t rank = 0;
};

/// RANK -> TRAINER: its process was asked to stop. The answer is a run_over, when others have its parts of the model.
struct rank_leaving {
  device_id device;
};

/// RANK -> TRAINER: this rank has finished the step.
struct rank_ended {
  uint64_t attempt = 0;
  uint32_t rank = 0;
  loss_sums losses;
  uint32_t strays_at = no_layer;             ///< The first layer with an output that is not finite.
  uint64_t bytes_peak = 0, bytes_needed = 0; ///< As in value_store.
  std::vector<kept_part> made;               ///< Its parts of the model before the next step.
  std::vector<event> events;                 ///< If they are wanted, in seconds of the process's steady clock.
};

/// RANK -> TRAINER: the step cannot be done: by no ranks, or, with out_of_memory, not by this number of ranks.
struct rank_failed {
  uint64_t attempt = 0;
  uint32_t rank = 0;
  caf::error why;
};

/// TRAINER -> RANK: give up the attempt under way. The answer is this number.
struct step_abandoned {
  uint64_t attempt = 0;
};

/// TRAINER -> RANK: free the memory, and exit. The answer, of no meaning, comes when others can use the memory.
struct run_over {};

// Each message crosses the network field by field; an error as its text and code.

/// An error as it is sent: its text and code. No error is an empty text.
class error_on_wire {
public:
  explicit error_on_wire(caf::error& x) : text(x ? render(x) : std::string{}), code(wire_code(x)), x_(x) {}
  void restore() { x_ = error_from_wire(code, text); }

  std::string text;
  uint32_t code;

private:
  caf::error& x_;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, shard& x) {
  return f(x.index, x.count);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, group& x) {
  return f(x.first, x.count, x.stride);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_setting& x) {
  return f(x.parallel.tp, x.parallel.dp, x.parallel.shard_ranks, x.stands_in);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, range& x) {
  return f(x.begin, x.end);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, loss_sums& x) {
  return f(x.loss, x.samples, x.right);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, kept_part& x) {
  auto kind = static_cast<uint8_t>(x.kind);
  return f(caf::meta::type_name("kept_part"), kind, x.layer, x.part, x.tensor,
           caf::meta::load_callback([&]() -> caf::error {
             x.kind = static_cast<value_kind>(kind);
             return caf::none;
           }));
}

/// Without a run of positions, which only simulated layers have.
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, value_tag& x) {
  auto kind = static_cast<uint8_t>(x.kind), has = static_cast<uint8_t>(x.has);
  bool on_host = x.on_host;
  auto samples = x.samples.all();
  shard tensor = x.tensor;
  return f(caf::meta::type_name("value_tag"), kind, has, on_host, x.step, x.layer, x.part, tensor, samples,
           caf::meta::load_callback([&]() -> caf::error {
             x.tensor = tensor;
             x.kind = static_cast<value_kind>(kind);
             x.has = static_cast<form>(has);
             x.on_host = on_host;
             x.samples = {};
             for (auto& each : samples)
               x.samples.add(range_set{each});
             return caf::none;
           }));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, event& x) {
  auto what = static_cast<uint8_t>(x.what);
  return f(caf::meta::type_name("event"), what, x.aside, x.rank, x.peer, x.layer, x.samples, x.start, x.duration,
           x.memory, caf::meta::load_callback([&]() -> caf::error {
             x.what = static_cast<op>(what);
             return caf::none;
           }));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_ready& x) {
  error_on_wire problem{x.problem};
  return f(caf::meta::type_name("rank_ready"), x.device, x.place, problem.text, problem.code, x.settings,
           caf::meta::load_callback([&]() -> caf::error {
             problem.restore();
             return caf::none;
           }));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_order& x) {
  return f(caf::meta::type_name("step_order"), x.attempt, x.step, x.rank, x.world_size, x.sides, x.profiles, x.forget);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_arrival& x) {
  auto what = static_cast<uint8_t>(x.what), asked = static_cast<uint8_t>(x.asked);
  return f(caf::meta::type_name("rank_arrival"), x.attempt, x.number, what, x.aside, x.rank, x.peer, x.among,
           x.argument, asked, x.count, x.input, x.output, caf::meta::load_callback([&]() -> caf::error {
             x.what = static_cast<op>(what);
             x.asked = static_cast<form>(asked);
             return caf::none;
           }));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, room_wanted& x) {
  return f(caf::meta::type_name("room_wanted"), x.attempt, x.number, x.what);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, room_found& x) {
  return f(caf::meta::type_name("room_found"), x.attempt, x.number, x.rank, x.address);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exchange_ended& x) {
  return f(caf::meta::type_name("exchange_ended"), x.attempt, x.number, x.result, x.ended);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, part_wanted& x) {
  return f(caf::meta::type_name("part_wanted"), x.attempt, x.rank, x.what, x.address);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, part_found& x) {
  return f(caf::meta::type_name("part_found"), x.attempt, x.what, x.data);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, part_sought& x) {
  return f(caf::meta::type_name("part_sought"), x.attempt, x.what);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, part_request& x) {
  return f(caf::meta::type_name("part_request"), x.step, x.what);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_ended& x) {
  return f(caf::meta::type_name("rank_ended"), x.attempt, x.rank, x.losses, x.strays_at, x.bytes_peak, x.bytes_needed,
           x.made, x.events);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_failed& x) {
  error_on_wire why{x.why};
  return f(caf::meta::type_name("rank_failed"), x.attempt, x.rank, why.code, why.text,
           caf::meta::load_callback([&]() -> caf::error {
             why.restore();
             return caf::none;
           }));
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_alive& x) {
  return f(caf::meta::type_name("rank_alive"), x.attempt, x.rank);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_leaving& x) {
  return f(caf::meta::type_name("rank_leaving"), x.device);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_abandoned& x) {
  return f(caf::meta::type_name("step_abandoned"), x.attempt);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, run_over&) {
  return f(caf::meta::type_name("run_over"));
}
} // namespace ringmaster::training
