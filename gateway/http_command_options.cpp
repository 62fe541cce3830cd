#include "gateway/http_command_options.hpp"

#include "gateway/dialects/listener_file.hpp"
#include "messages/errc.hpp"

namespace ringmaster::gateway {

void add_http_options(option_table& table, std::string& where, http_options& target) {
  table.begin_group("HTTP: metrics, JSON, events and the page");
  table.text("--http", where).says("HOST:PORT", "where to serve it (port 0: any free port)").otherwise("no HTTP");
  table.file("--operator-token", target.operator_token)
    .says("FILE", "requests with the token in its first line may kill, hang, slow and drain")
    .otherwise("nothing can be changed");
  table.file("--reader-token", target.reader_token)
    .says("FILE", "reading needs the token in its first line")
    .otherwise("at 127.0.0.1 and ::1 processes of this user may read");
  table.flag("--open-reading", target.open_reading).says("every process that can connect may read");
  table.file("--http-certificate", target.certificate).says("FILE", "serves TLS with this certificate chain, in PEM");
  table.file("--http-key", target.key).says("FILE", "the certificate's key, in PEM");
  table.file("--http-clients", target.clients)
    .says("FILE", "clients need a certificate that the authority in this file has signed, in PEM")
    .otherwise("clients need none");
  table
    .value("--http-name",
           [&target](const std::string& text) {
             target.names.push_back(text);
             return caf::error{};
           })
    .says("NAME", "a name of this server that requests may use besides its addresses and localhost")
    .many();
}

caf::error check_http_options(const std::string& where, http_options& target) {
  if (where.empty()) {
    const bool has_others = !target.operator_token.empty() || !target.reader_token.empty() || target.open_reading
                            || !target.certificate.empty() || !target.key.empty() || !target.clients.empty() || !target.names.empty();
    return has_others ? invalid("tokens, certificate and names are for HTTP: give --http HOST:PORT, too")
                      : caf::error{};
  }
  auto read = parse_listening_address(where);
  if (!read)
    return with_context("--http", read.error());
  target.where = *read;
  return caf::none;
}

} // namespace ringmaster::gateway
