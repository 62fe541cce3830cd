#include "messages/errc.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

namespace ringmaster {

namespace {

struct errc_entry {
  const char* name;
  const char* meaning;
};

constexpr errc_entry entries[] = {
#define RINGMASTER_ENTRY(name, meaning) {#name, meaning},
  RINGMASTER_ERRORS(RINGMASTER_ENTRY)
#undef RINGMASTER_ENTRY
};

} // namespace

std::string to_string(errc code) {
  const auto number = static_cast<uint8_t>(code);
  return number < errc_count ? entries[number].name : "errc_" + std::to_string(number);
}

std::string_view meaning_of(errc code) {
  const auto number = static_cast<uint8_t>(code);
  return number < errc_count ? entries[number].meaning : "";
}

caf::error make_error(errc code, std::string text) {
  return caf::error{static_cast<uint8_t>(code), caf::atom("ringmaster"), caf::make_message(std::move(text))};
}

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

caf::error malformed(std::string text) {
  return make_error(errc::corrupt, std::move(text));
}

caf::error with_context(const std::string& subject, const caf::error& err) {
  return err ? make_error(static_cast<errc>(wire_code(err)), subject + ": " + render(err)) : caf::error{};
}

caf::error with_cause(errc code, std::string what, std::string cause) {
  return caf::error{static_cast<uint8_t>(code), caf::atom("ringmaster"),
                    caf::make_message(std::move(what), std::move(cause))};
}

std::string cause_of(const caf::error& err) {
  if (err && err.category() == caf::atom("ringmaster") && err.context().match_elements<std::string, std::string>())
    return err.context().get_as<std::string>(1);
  return render(err);
}

errc code_of(const caf::error& err) {
  return err && err.category() == caf::atom("ringmaster") ? static_cast<errc>(err.code()) : errc::ok;
}

uint32_t wire_code(const caf::error& err) {
  if (!err)
    return 0;
  if (err.category() == caf::atom("ringmaster"))
    return err.code();
  if (err == caf::sec::request_timeout)
    return static_cast<uint32_t>(errc::timed_out);
  if (err == caf::sec::request_receiver_down || err.category() == caf::atom("exit"))
    return static_cast<uint32_t>(errc::device_lost);
  return static_cast<uint32_t>(errc::refused);
}

caf::error error_from_wire(uint32_t code, const std::string& text) {
  if (code == 0 && text.empty())
    return caf::none;
  const bool known = code != 0 && code < errc_count;
  return make_error(known ? static_cast<errc>(code) : errc::refused, text);
}

namespace {

/// CAF's reasons for an actor's end, as an operator says them.
std::string render_exit(caf::exit_reason reason) {
  switch (reason) {
    case caf::exit_reason::normal: return "it has ended";
    case caf::exit_reason::user_shutdown: return "it was shut down";
    case caf::exit_reason::kill: return "it was killed";
    case caf::exit_reason::remote_link_unreachable: return "its process has exited, or has stopped answering";
    case caf::exit_reason::unhandled_exception: return "it failed with an exception";
    case caf::exit_reason::out_of_workers: return "its process has no worker left";
    default: return to_string(reason);
  }
}

} // namespace

std::string render(const caf::error& err) {
  if (err == caf::sec::cannot_connect_to_node)
    return "the connection was refused";
  if (err == caf::sec::malformed_basp_message || err == caf::sec::incompatible_versions)
    return "what answers there does not speak CAF's protocol";
  if (err == caf::sec::disconnect_during_handshake)
    return "it closed the connection before it had answered; its process may have ended";
  if (err == caf::sec::cannot_open_port)
    return "the port cannot be opened";
  if (err == caf::sec::request_receiver_down)
    return "the receiver has ended, and gave no answer";
  if (err == caf::sec::request_timeout)
    return "no answer in time";
  if (err == caf::sec::connection_timeout)
    return "nothing came from there for middleman.connection-timeout";
  if (err && err.category() == caf::atom("exit"))
    return render_exit(static_cast<caf::exit_reason>(err.code()));
  if (!err || err.category() != caf::atom("ringmaster"))
    return caf::actor_system_config::render(err);
  if (err.context().match_elements<std::string>())
    return err.context().get_as<std::string>(0);
  if (err.context().match_elements<std::string, std::string>())
    return err.context().get_as<std::string>(0) + ": " + err.context().get_as<std::string>(1);
  return to_string(static_cast<errc>(err.code()));
}

} // namespace ringmaster
