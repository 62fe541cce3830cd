// What a process that was admitted sends to the actors of a cluster: every message of their interfaces, as CAF decodes
// it from the network, in every order.
#include "actors/coordination/coordinator.hpp"
#include "actors/devices/device.hpp"
#include "actors/hosts/journal.hpp"
#include "actors/hosts/relay.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/deterministic_system.hpp"
#include "tests/support/temporary_directory.hpp"

#include <caf/binary_deserializer.hpp>

#include <array>
#include <map>
#include <string>
#include <typeinfo>
#include <vector>

namespace ringmaster::fuzz {

namespace {

/// A message of a type, whose values are still to be read.
using message_maker = caf::message (*)();

template <class... Values>
caf::message empty_message() {
  return caf::make_message(Values{}...);
}

/// A name for these types that stays when others are added.
template <class... Values>
uint16_t number_of_types() {
  uint32_t result = 0x811c9dc5;
  for (const char letter : (std::string{} + ... + typeid(Values).name()))
    result = (result ^ static_cast<unsigned char>(letter)) * 0x01000193;
  return static_cast<uint16_t>(result ^ result >> 16);
}

/// The messages that an actor takes.
struct message_types {
  template <class... Signatures>
  static message_types of(caf::detail::type_list<Signatures...>) {
    message_types result;
    (result.add(Signatures{}), ...);
    return result;
  }

  template <class... Inputs, class Outputs>
  void add(caf::typed_mpi<caf::detail::type_list<Inputs...>, Outputs>) {
    all.push_back(empty_message<Inputs...>);
    const bool is_new = by_number.emplace(number_of_types<Inputs...>(), all.back()).second;
    ensure(is_new, "each type of message has a number of its own");
  }

  caf::message make(uint16_t number) const {
    const auto found = by_number.find(number);
    return (found != by_number.end() ? found->second : all[number % all.size()])();
  }

  std::vector<message_maker> all;
  std::map<uint16_t, message_maker> by_number;
};

/// A cluster of four devices in virtual time, with a communicator of three of them, and a client.
class small_cluster : public test::deterministic_system {
public:
  small_cluster() {
    static const test::temporary_directory dir;
    journal_options records;
    records.store = make_memory_journal({});
    journal = sys.spawn(ringmaster::journal, std::move(records));
    coordinator_options options;
    options.journal = journal;
    options.communicators.journal = journal;
    options.communicators.policy = proto::REPLACE;
    options.meet_bytes = 64;
    host = sys.spawn<fair_coordinator>(options);
    relay = make_relay(sys, std::chrono::milliseconds{100});
    device_options settings;
    settings.memory_dir = dir.path();
    settings.memory_bytes = 1 << 14;
    settings.coordinator = host;
    settings.streams_max = 8;
    settings.streams_options.slice_bytes = 1024;
    settings.streams_options.chunk_bytes = 256;
    for (int i = 0; i < 4; ++i) {
      settings.relay = i == 0 ? relay : relay_actor{};
      devices.push_back(sys.spawn(device, settings));
    }
    deliver_all();
    gpu_sim::CommInitRequest init;
    init.set_numdevices(3);
    const auto made = ask<gpu_sim::CommInitResponse>(host, init);
    ensure(made && made->success(), "a cluster with free devices has room for a communicator");
    auto& coordinator = dynamic_cast<fair_coordinator*>(caf::actor_cast<caf::abstract_actor*>(host))->state;
    communicator = coordinator.communicators.find(communicator_id{made->commid()})->handle;
    const auto first = made->devices(0).deviceid().value();
    stream = coordinator.devices.find(device_id{first})->handle.stream;
  }

  ~small_cluster() {
    for (auto& each : devices)
      self->send_exit(each, caf::exit_reason::kill);
    self->send_exit(relay, caf::exit_reason::user_shutdown);
    self->send_exit(host, caf::exit_reason::kill);
    self->send_exit(journal, caf::exit_reason::kill);
    settle();
    for (int i = 0; i < 1000 && scheduler.trigger_timeout(); ++i)
      settle();
  }

  /// Delivers what is pending, as far as that ends.
  void settle() {
    for (int i = 0; i < 100'000 && scheduler.try_run_once(); ++i)
      ;
  }

  caf::strong_actor_ptr client() { return caf::actor_cast<caf::strong_actor_ptr>(self.ptr()); }

  journal_actor journal;
  coordinator_actor host;
  relay_actor relay;
  std::vector<device_actor> devices;
  caf::strong_actor_ptr communicator, stream;
};

/// Reads the values of a message. Errors: what comes is no such message.
caf::error read(small_cluster& cluster, caf::message& what, std::string_view bytes) {
  caf::binary_deserializer source{cluster.sys, bytes.data(), bytes.size()};
  for (size_t i = 0; i < what.size(); ++i) {
    if (what.match_element<caf::atom_value>(i))
      continue;
    if (auto problem = what.load(i, source))
      return problem;
    if (what.match_element<caf::strong_actor_ptr>(i) && what.get_as<caf::strong_actor_ptr>(i) == nullptr)
      what.get_mutable_as<caf::strong_actor_ptr>(i) = cluster.client(); // whose handle cannot be in a corpus
    else if (what.match_element<offer>(i) && what.get_as<offer>(i).sender == nullptr)
      what.get_mutable_as<offer>(i).sender = cluster.client();
  }
  return caf::none;
}

/// For each message: a byte that says who gets it, two that say which it is, and a part with its values. 255 in place
/// of the first: a second passes.
void send_messages(std::string_view bytes) {
  struct receiver {
    caf::strong_actor_ptr handle;
    const message_types& takes;
  };
  static const auto of_coordinator = message_types::of(coordinator_actor::signatures{}),
                    of_communicator = message_types::of(communicator_actor::signatures{}),
                    of_stream = message_types::of(stream_actor::signatures{}),
                    of_device = message_types::of(device_actor::signatures{}),
                    of_relay = message_types::of(relay_actor::signatures{}),
                    of_journal = message_types::of(journal_actor::signatures{});
  small_cluster cluster;
  const auto handle = [](const auto& x) { return caf::actor_cast<caf::strong_actor_ptr>(x); };
  const std::array receivers{receiver{handle(cluster.host), of_coordinator},
                             receiver{cluster.communicator, of_communicator},
                             receiver{cluster.stream, of_stream},
                             receiver{handle(cluster.devices.front()), of_device},
                             receiver{handle(cluster.relay), of_relay},
                             receiver{handle(cluster.journal), of_journal}};
  input_parts parts{bytes};
  for (int messages = 0; messages < 64 && !parts.empty(); ++messages) {
    const auto whom = parts.byte();
    if (whom == 255) {
      cluster.scheduler.advance_time(std::chrono::seconds{1});
      cluster.settle();
      continue;
    }
    const auto& [receiver, takes] = receivers[whom % receivers.size()];
    uint16_t number = parts.byte();
    number = static_cast<uint16_t>(number | parts.byte() << 8);
    auto what = takes.make(number);
    if (read(cluster, what, parts.part()))
      continue;
    receiver->enqueue(cluster.client(), cluster.self->new_request_id(caf::message_priority::normal), std::move(what),
                      nullptr);
    cluster.settle();
  }
}

const fuzz_target fuzz_actor_messages{"actor_messages", send_messages};

} // namespace

} // namespace ringmaster::fuzz
