#include "storage/base/config/yaml_errors.h"

#include <array>

namespace labrack::config {
namespace {

// The first that fits counts.
constexpr std::array<SyntaxText, 23> kSyntaxTexts{{
    {"escape", "", "LR105", "this escape is not known in a \"...\" text",
     "write \\\\ for a backslash, or use '...', where a backslash stands for itself"},
    {"hexdecimal", "", "LR105", "this escape needs hexadecimal digits",
     "write \\\\ for a backslash, or use '...', where a backslash stands for itself"},
    {"", "quoted scalar", "LR106", "this quoted text is not closed",
     "write the closing quote; within \"...\" a quote is \\\", within '...' it is ''", true},
    {"tab character", "", "LR108", "a tab is used for indentation", "indent with spaces"},
    {"", "flow sequence", "LR107", "this list is not closed",
     "end it with `]`, with `,` between its items", true},
    {"", "flow mapping", "LR107", "this mapping is not closed",
     "end it with `}`, with `,` between its entries", true},
    {"cannot start any token", "", "LR105", "a value cannot begin with this character",
     "put the value in quotes"},
    {"mapping values are not allowed", "", "LR105", "a `:` is not expected here",
     "put a text that holds `: ` in quotes, or indent the line as its neighbours are"},
    {"could not find expected ':'", "", "LR105", "this is neither `key: value` nor `- item`",
     "write `:` and a space after a key, and quotes around a text of several words", true},
    {"did not find expected key", "", "LR105", "this does not belong to the mapping around it",
     "indent it as the other keys of that mapping are"},
    {"expected '-' indicator", "", "LR105", "this does not belong to the list around it",
     "begin every item with `- ` at the same indentation, or indent this differently"},
    {"block sequence entries are not allowed", "", "LR105", "a `-` is not expected here",
     "write the list on lines of its own below its key, one `- item` a line"},
    {"mapping keys are not allowed", "", "LR105", "a key is not expected here",
     "write the mapping on lines of its own, indented below its key"},
    {"expected node content", "", "LR105", "a value is missing here",
     "write the value, or remove the comma"},
    {"", "anchor", "LR110", "`&` and `*` at the start of a value are not taken",
     "put the value in quotes"},
    {"", "alias", "LR110", "`&` and `*` at the start of a value are not taken",
     "put the value in quotes"},
    {"", "tag", "LR111", "`!` at the start of a value is not taken", "put the value in quotes"},
    {"tag handle", "", "LR111", "`!` at the start of a value is not taken",
     "put the value in quotes"},
    {"", "directive", "LR112", "lines that begin with `%` are not taken", "remove the line"},
    {"%YAML", "", "LR112", "lines that begin with `%` are not taken", "remove the line"},
    {"incompatible YAML document", "", "LR112", "lines that begin with `%` are not taken",
     "remove the line"},
    {"<document start>", "", "LR105", "this does not belong to what stands before it",
     "write one mapping of `key: value` lines, all at the same indentation"},
    {"", "block scalar", "LR105", "this text block is not begun right",
     "write `|` or `>` alone at the end of the line, and the text indented below it"},
}};

bool Has(const char* text, std::string_view part) {
  return part.empty() || (text != nullptr && std::string_view(text).find(part) != part.npos);
}

}  // namespace

const SyntaxText* FindSyntaxText(const char* problem, const char* context) {
  for (const SyntaxText& text : kSyntaxTexts) {
    if (Has(problem, text.problem) && Has(context, text.context)) return &text;
  }
  return nullptr;
}

}  // namespace labrack::config
