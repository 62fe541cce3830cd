#pragma once

#include "actors/training/group_calls.hpp"
#include "actors/training/interfaces.hpp"
#include "actors/training/part_gatherings.hpp"
#include "actors/training/step_record.hpp"
#include "actors/training/trainer_settings.hpp"
#include "training/computed/model_parts.hpp"
#include "training/computed/step_world.hpp"

#include <functional>
#include <optional>
#include <set>

namespace ringmaster::training {

/// The state of the TRAINER. A step is done when all of its ranks have said so. Until then nobody has changed what it
/// began with: when a rank is lost, the others give it up, and begin it again as a world of their own. Which step is
/// next is decided here alone, so a rank that hears of the end late is no other than one that heard in time. A step is
/// committed when the journal has the one before: so whenever the coordinator's process ends, its log lacks one at
/// most.
class trainer_state {
public:
  static inline const char* name = "trainer";

  trainer_actor::pointer self = nullptr;

  void start(trainer_settings settings);
  void ready(const rank_ready& x);
  void arrived(std::vector<rank_arrival>& all);
  void room_found(const training::room_found& x);
  void part_wanted(const training::part_wanted& x);
  void ended(const rank_ended& x);
  void failed(const rank_failed& x);
  /// A rank computes.
  void alive(const rank_alive& x);
  void leaving(const rank_leaving& x);
  void rank_down(const caf::down_msg& x);
  void tick();
  /// Ends before the end, as `end_with_model`; the second time at once.
  void stop_requested();
  /// `problem`: none, where all steps are done.
  void end_run(const caf::error& problem);
  /// The attempt of that number has been given up by all.
  void go_on(uint64_t attempt);
  /// There is room for a step's end.
  void room_made();

private:
  static constexpr caf::timespan look_every = std::chrono::seconds{1};
  /// Without news of a step: people are told whom it waits for.
  static constexpr caf::timespan quiet_max = std::chrono::seconds{5};
  /// And told so again, behind 10, 20, 40 s more.
  static constexpr caf::timespan repeat_interval = std::chrono::seconds{10};
  /// Of one step with the same ranks: then it is their program that waits for what never comes.
  static constexpr uint32_t standstills_max = 3;
  /// For the last image of a run that is told to end, and for ranks to give their memory back.
  static constexpr caf::timespan ending_limit = std::chrono::seconds{5};
  /// So that whoever has failed is known to be lost before the next attempt, or most often.
  static constexpr caf::timespan breath = std::chrono::milliseconds{20};

  enum class phase : uint8_t {
    gathering,  ///< Ranks start.
    stepping,   ///< They work on a step.
    recovering, ///< They give it up.
    over
  };
  struct member {
    device_id device;
    uint32_t place = 0; ///< Ranks of a step are in this order.
    rank_actor handle{};
    bool ready = false;
    bool leaves = false;                  ///< Behind this step, when others have what it has.
    std::optional<loss_sums> losses{};    ///< Of the step; none: it has not ended.
    caf::actor_clock::time_point heard{}; ///< In the step.
    uint32_t strays_at = no_layer;        ///< As rank_ended has it.
    std::vector<kept_part> makes{};       ///< What it has said in this step, before all have.
    std::vector<kept_part> made{};        ///< What it has of the model as it is before the step.
  };
  using found_parts = part_gatherings::found_parts;
  /// A communication whose ranks have come, but not all know where to put what comes.
  struct open_exchange {
    exchange_desk::exchange all;
    size_t rooms_awaited = 0;
  };

  void begin_step();
  uint32_t ready_count() const;
  /// In which they may have room; 0 ranks: in none.
  step_world world_of_those_left() const;
  /// The ranks of the next step, of those that are ready; says so where they are others than before, or not all. They
  /// come first in members_.
  void choose_world();
  /// Ends the run where no rank of this step can say that: who does is of another program. `rank`: as it calls itself.
  bool is_possible(uint32_t rank, bool what_it_says);
  /// By a message of this attempt.
  void heard_of(uint32_t rank);
  bool is_profiled() const {
    const auto& its = settings_.profile_steps;
    return sides_ == setting_of(settings_.job->shape) && step_ >= its.begin && step_ < its.end
           && (step_ - its.begin) % settings_.profile_every == 0;
  }

  // trainer_exchanges.cpp: how ranks meet.
  void arrived(rank_arrival& x);
  void exchange(exchange_desk::exchange all);
  void run(exchange_desk::exchange all);
  /// What one message has brought about goes together.
  void call_gathered();

  // trainer_devices.cpp: which devices it has ranks on.
  /// What a rank ends with that takes part no more; its process may have stood still, and says it.
  static caf::error without(const std::string& why);
  /// Its rank, if it has one, ends, and its device is taken no more.
  void leave_out(const member& each, const std::string& why);
  void add(device_id device);
  void gathered();
  /// `then` gets how the coordinator lost it; none: it has it, or does not say.
  void ask_whether_lost(device_id device, std::function<void(const caf::error&)> then);
  /// Its process may have ended before it could say a word.
  void ask_whether_it_comes(device_id device);
  /// It cannot take part: its rank ends, and its process may have another device soon.
  void refuse(std::vector<member>::iterator which, const caf::error& problem);
  void look_for_devices();
  /// Those that are left cannot run the step; others may come.
  void await_devices();

  // trainer_leaving.cpp: how ranks leave in good order.
  /// Ranks on nodes that are drained leave behind the step.
  void look_for_drains();
  void is_to_leave(device_id device, std::string_view why);
  /// Whether any are to leave that have what nobody else has, and that is on its way to the host. Others go.
  bool hand_over();
  /// Somebody was lost meanwhile: of those that are left.
  void hand_over_anew();
  /// Those that leave. `problem`: why what they have is lost.
  void let_leave(const caf::error& problem);

  // trainer_commit.cpp: what the end of a step makes.
  /// Ends the run because of an error in its program: "step 3: why".
  void refuse(const caf::error& why);
  /// Refuses it where ranks wait for what never comes.
  bool is_stuck();
  /// Once all ranks have ended the step, and the journal has the one before.
  void commit();
  bool all_have_ended() const;
  /// Whether the step counts. Errors: aborted for a loss that is no number; invalid_argument for an error of the
  /// program, with the step.
  caf::error check_step();
  /// Whether the ranks have all of the model as it is after the step. Errors: invalid_argument, with the part.
  caf::error check_model_of_step();
  proto::TrainingStep step_done() const;
  void tell_profile();

  // trainer_end.cpp: how the run ends.
  /// For this reason, with the model as it is before this step as the last image, if the ranks have all of it yet.
  void end_with_model(const caf::error& why);
  /// What it ends with: as of the step, once nothing changes it.
  void take_last_image();
  void end_without_model(const std::string& why);
  /// All steps are done.
  void finish();
  /// It gives its memory back, and ends.
  void let_go(const rank_actor& handle, std::function<void()> then);
  /// When all have given their memory back, so that whoever comes next finds it free.
  void let_ranks_go(std::function<void()> then);

  // trainer_patience.cpp: whom it waits for, and how long.
  /// Says that nothing is heard of the step.
  void tell_silence();
  /// What is waited for; none: nothing.
  std::optional<std::string> awaited() const;
  /// Which ranks have not ended the step, and since when nothing has come of them; none: all have.
  std::optional<std::string> unended() const;
  /// Of which devices the ranks are awaited.
  std::vector<device_id> awaited_devices() const;
  /// Whether the coordinator has these still, unless it was asked before and has not answered: it may notice late.
  void ask_again();
  void found_lost(device_id device, const caf::error& lost);
  /// Nothing was heard for as long as is waited for: those that have not become ready are left out.
  void give_up_gathering();
  /// This process has stood still for so long: nobody else was late.
  void excuse(caf::timespan late);
  /// Once more with the same ranks, and as often as may be.
  bool stands_still_again();

  // trainer_recovery.cpp: when a step is given up, and begun again.
  /// `why`: none where nothing has failed, and ranks join or leave.
  void recover(const caf::error& why);
  /// Its communicators end; `begin_again` waits for that.
  void end_calls();
  void have_given_up(const member& each);
  /// Whether the coordinator has it still: a rank may hear late, or never, that its device's process is gone.
  void ask_after(device_id device);
  /// The device takes part no more. `lost`: how it was lost, see `cause_of`.
  void drop(device_id device, const caf::error& lost);
  /// Of what `recover` waits for, this has come.
  void given_up_by(device_id device);
  void abandoned();
  /// Once all of it has.
  void begin_again();

  // trainer_parts.cpp: how a rank gets parts of the model that it lacks.
  /// With others that want it, from where that rank has it.
  void hand_on(const training::part_wanted& x, uint32_t owner);
  /// `source`: of address 0 where it is not there.
  void found_at(const training::part_wanted& x, const group_calls::place& source);
  /// Put together of these.
  void give(const training::part_wanted& x, const found_parts& from);

  // trainer_model.cpp: where the model is, as it is before the step.
  /// Whether all of it is there, or as it once was; then back to that.
  void find_model();
  bool shows_model_of(uint64_t step) const;
  /// Whether this process has memory for the mirror; says so when that changes.
  bool has_room_for_mirror();
  void keep_model();
  void show(const model_image& x);
  /// The whole of it; beside whatever ranks do next.
  void take_image(std::function<void(const caf::expected<model_image>&)> then);
  /// As of this step, within `patience`.
  void gather(const std::vector<model_parts::source>& wanted, part_gatherings::done_function then);
  /// Of the model as of that step: it was asked, and has not got what it once had, or is gone.
  void has_nothing(device_id device, uint64_t step);
  /// Where they are as of the step: by index in members_, and what this has itself.
  model_parts parts(bool of_those_that_leave = true) const;
  static constexpr uint32_t on_host = UINT32_MAX;
  /// One of members_.
  bool is_in_step(const member& x) const { return now_ == phase::stepping && &x < members_.data() + world_; }
  std::string latest_problem() const { return latest_problem_ ? render(latest_problem_) : std::string{}; }
  bool is_current(uint64_t attempt) const { return now_ == phase::stepping && attempt == attempt_; }

  trainer_settings settings_;
  phase now_ = phase::gathering;
  std::vector<member> members_; ///< Alive; the first `world_` are the ranks of the step.
  uint32_t world_ = 0, wanted_ = 0;
  step_setting sides_;                             ///< Of the step.
  std::vector<std::vector<kept_part>> whole_made_; ///< What ranks made in the latest step that was looked through.
  uint32_t idle_ = 0;                              ///< Of those that are ready, ranks that it has no use for.
  uint64_t step_ = 0, attempt_ = 0;
  uint32_t attempts_ = 0;    ///< Of this step.
  uint32_t standstills_ = 0; ///< Of these with the same ranks, for all of its patience.
  std::vector<device_id> still_ranks_;
  caf::actor_clock::time_point silent_since_{};             ///< As it was told.
  caf::timespan next_warning_{};                            ///< From then on, the next time.
  std::optional<caf::actor_clock::time_point> asked_at_;    ///< The coordinator, by ask_again; it has not answered.
  size_t asking_ = 0;                                       ///< For so many devices.
  bool handing_over_ = false;                               ///< What ranks that leave have is on its way to the host.
  std::optional<caf::actor_clock::time_point> short_since_; ///< Too few ranks are there for any world.
  uint32_t may_return_ = 0; ///< Processes that have lost their device, and are not known to have ended.
  std::shared_ptr<group_calls> calls_;
  exchange_desk desk_;
  std::map<uint64_t, open_exchange> open_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> rooms_; ///< By rank and its number: whose exchange it is.
  uint64_t exchanges_ = 0;
  std::map<kept_part, std::vector<group_calls::place>> wanted_parts_; ///< Until it is known where they come from.
  step_report report_;
  std::vector<event> events_;
  std::chrono::steady_clock::time_point begun_;
  caf::actor_clock::time_point news_, ticked_;
  std::set<device_id> lost_;
  size_t abandoning_ = 0;                     ///< Answers that `recover` waits for: the coordinator's, and of calls_.
  std::set<device_id> gives_up_;              ///< Of these ranks, too: they have not given up their step yet.
  caf::error latest_problem_;                 ///< Of an attempt; none: none has failed.
  std::optional<part_gatherings> gatherings_; ///< Since the start.
  model_image image_;         ///< The latest. Where it is of the step, what ranks miss may come from it.
  uint64_t shown_ = 0;        ///< The step of the latest that the watcher has, or had.
  bool lacks_mirror_ = false; ///< There was no room for it when that was last looked at.
  std::optional<caf::actor_clock::time_point> mirror_looked_at_; ///< For its room.
  uint64_t image_asked_in_ = 0;       ///< The latest attempt before which one was asked for once more.
  bool joins_ = false;                ///< New ranks are ready: they come in behind this step.
  bool looking_ = false;              ///< For devices.
  bool lacks_devices_ = false;        ///< For the first step: others have taken some meanwhile.
  caf::error ending_;                 ///< Why no step is committed any more; none: it goes on.
  std::vector<step_world> too_small_; ///< Their ranks had no room for a step.
  std::optional<step_record> record_; ///< Of the steps that were committed; none: nobody wants one.
  bool lacks_room_ = false;           ///< The step has ended, and whoever watches cannot be told yet.
};

trainer_actor::behavior_type trainer(trainer_actor::stateful_pointer<trainer_state> self, trainer_settings settings);

} // namespace ringmaster::training
