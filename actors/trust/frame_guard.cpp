#include "actors/trust/frame_guard.hpp"

#include "messages/errc.hpp"

#include <caf/actor_registry.hpp>
#include <caf/atom.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/message_id.hpp>
#include <caf/monitorable_actor.hpp>

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ringmaster {

namespace {

using caf::io::basp::message_type;

/// The types of a message, which come first: CAF writes "@<>+TYPE+TYPE...". False: it is no message of CAF.
bool read_types(caf::binary_deserializer& source, std::string_view& types) {
  constexpr std::string_view mark = "@<>";
  size_t stages = 0, size = 0;
  uint16_t number = 0;
  if (source.begin_sequence(stages) || stages != 0 // of composed actors, which have none of ours in them
      || source(number) || number != 0 || source.begin_sequence(size) || size > source.remaining())
    return false;
  types = {reinterpret_cast<const char*>(source.remainder().data()), size};
  if (!types.starts_with(mark))
    return false;
  types.remove_prefix(mark.size());
  if (types.starts_with('+'))
    types.remove_prefix(1);
  return true;
}

} // namespace

struct frame_guard::frame {
  const caf::io::basp::header& header;
  caf::node_id from, to;  ///< Processes.
  std::string_view types; ///< Of a message.
};

frame_guard::frame_guard(peer_directory& peers, const caf::node_id& process, connected_peer who)
  : peers_(peers), process_(process), who_(std::move(who)) {
  peers_.connected(process_, who_);
}

frame_guard::~frame_guard() {
  peers_.disconnected(process_);
}

bool frame_guard::refuse(std::string why) {
  peers_.refused(who_, std::move(why));
  return false;
}

bool frame_guard::may_speak_for(const caf::node_id& process) const {
  return may_do_everything(who_.who.as) || process == process_;
}

bool frame_guard::admits(caf::io::basp_broker& broker, const caf::io::basp::header& header,
                         const std::vector<char>& content, caf::execution_unit* context) {
  if (caf::io::basp::is_heartbeat(header))
    return true;
  caf::binary_deserializer source{context, content};
  const bool is_direct = header.operation == message_type::direct_message;
  caf::node_id from, to; // empty: CAF would read into what a copy of another one shares with it
  if (!is_direct && source(from, to))
    return refuse("a frame without a sender");
  frame x{header, is_direct ? process_ : from, is_direct ? broker.system().node() : to, {}};
  if (!is_direct && header.operation != message_type::routed_message)
    return admits_notice(x);
  if (!read_types(source, x.types))
    return refuse("a message that CAF has not written");
  return admits_message(broker, x, context);
}

/// Of an actor that has ended, or is to be watched.
bool frame_guard::admits_notice(const frame& x) {
  return may_speak_for(x.from) || refuse(fmt::format("a notice in the name of the process {}", to_string(x.from)));
}

bool frame_guard::admits_message(caf::io::basp_broker& broker, const frame& x, caf::execution_unit* context) {
  if (x.header.has(caf::io::basp::header::named_receiver_flag)) {
    constexpr auto asked_at_each_connection = static_cast<uint64_t>(caf::atom("SpawnServ")); // by CAF itself
    return x.header.dest_actor != asked_at_each_connection
           && refuse("a message to an actor of CAF: no other process may change this one's configuration");
  }
  if (!may_speak_for(x.from))
    return refuse(fmt::format("a message in the name of the process {}", to_string(x.from)));
  const auto id = caf::make_message_id(x.header.operation_data);
  if (id.category() > caf::message_id::normal_message_category)
    return refuse("a message of CAF's streams, which are not used here"); // CAF does not check what is in it
  auto& system = broker.system();
  const bool is_for_us = x.to == system.node();
  const auto receiver = is_for_us ? system.registry().get(x.header.dest_actor) : nullptr;
  const auto sender = [&] {
    return x.header.source_actor == 0 ? nullptr : broker.proxies().get_or_put(x.from, x.header.source_actor);
  };
  if (is_for_us && receiver == nullptr) { // CAF would look again, when there may be one
    if (id.is_request())
      caf::detail::sync_request_bouncer{caf::exit_reason::remote_link_unreachable}(sender(), id);
    return false;
  }
  const auto* actor = receiver ? dynamic_cast<caf::monitorable_actor*>(receiver->get()) : nullptr;
  const received_message what{actor == nullptr ? std::string_view{} : actor->name(), x.types, id.is_response()};
  const bool is_passed_on = x.from != process_; // then it is not the coordinator's own, which alone ends devices
  const auto as = is_passed_on && who_.who.as == role::coordinator ? role::member : who_.who.as;
  if (judge(as, what) == permission::allowed)
    return true;
  auto why = why_not(as, what);
  if (id.is_request())
    if (const auto asks = sender())
      asks->enqueue(caf::make_mailbox_element(receiver, id.response_id(), {}, make_error(errc::permission_denied, why)),
                    context);
  return refuse(std::move(why));
}

} // namespace ringmaster
