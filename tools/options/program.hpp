#pragma once

#include "actors/configuration/configuration.hpp"

#include <map>
#include <string>
#include <vector>

namespace ringmaster {

/// A short option of one command, and what becomes of its value: the configuration key it stands for, or a place of its
/// own.
using short_options = std::map<std::string, std::string>;

/// Reads the configuration: config/caf-application.conf below the current directory, if it is there, or the file of
/// --conf; then the command line, with the short options put in their keys' places. Those whose key is empty are left in
/// `own`, by name. Errors: a sentence, also for what is left over.
caf::error read_configuration(configuration& cfg, std::vector<std::string> args, const short_options& known,
                              std::map<std::string, std::string>& own);

/// Prints the text if --help or -h is among the arguments. Configurations take them for CAF's, so ask before one reads.
bool wants_help(const std::vector<std::string>& args, const char* text);

/// Prints the sentence to standard error, with the program's name; returns `status`.
int report(const caf::error& problem, int status = 1);

/// Blocks the signals that end a program, before any thread is started, so that `ending_signal` sees them.
void block_ending_signals();
/// The signal that has come since, or 0.
int ending_signal();

} // namespace ringmaster
