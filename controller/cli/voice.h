// What labrack says beside its data, on one stream and in one form. For people it is text; with
// --progress=json it is NDJSON, so that the stream holds objects only, whatever happens: usage
// errors, an invalid playbook, a lab that failed, a second Ctrl-C. The events of a run stand
// between them (progress.h); README.md shows all objects.
#pragma once

#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "storage/base/config/source.h"
#include "storage/base/exit_codes.h"
#include "storage/base/result.h"

namespace labrack::cli {

class Voice {
 public:
  struct Form {
    bool json = false;
    int descriptor = STDERR_FILENO;
    bool colour = false;  // of text only
    friend bool operator==(const Form&, const Form&) = default;
  };

  // The JSON form begins with the version's line; so it does where the form changes later.
  explicit Voice(Form form);
  void Become(Form form);
  const Form& form() const { return form_; }

  // A line for people. Notes explain what a plan does; warnings say what may be wrong.
  void Say(const std::string& text);
  void Note(const std::string& text);
  void Warn(const std::string& text);
  // Why the verb ends as it does. `help` may be empty.
  void Fail(const Error& error, ExitCode code, const std::string& help = {});
  // `text` is what the problems are in, for excerpts.
  void Refuse(const config::Problems& problems, std::string_view text);
  // The last line: only the JSON form has one, since a shell shows no exit code.
  void End(ExitCode code);

  // Everything that Fail() and Refuse() said, one line each: for files that say why there is no
  // report.
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  void Line(const std::string& text) const;

  Form form_;
  std::vector<std::string> reasons_;
};

}  // namespace labrack::cli
