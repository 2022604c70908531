// A read-only tree of a YAML text with the place of every key and value. It is built from libyaml's
// events (yaml_reader.cc) and refuses whatever could be misread: duplicate keys, tags, aliases and
// anchors, `<<`, several documents, tabs, keys that are not plain words, and more than fits the
// limits. Scalars stay text: the field that reads one decides its type, never the scalar's look.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/config/source.h"

namespace labrack::config {

class Node {
 public:
  enum class Kind { kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kScalar;
  std::string text;            // scalars only
  bool quoted = false;         // scalars only: '...' , "...", | or >
  bool refused = false;        // stood for something refused (an alias, say): say no more about it
  Span span;                   // of the value
  std::vector<Node> items;     // lists only
  std::vector<Entry> entries;  // maps only, in the order written

  // The value of `key`, or nullptr. Maps only.
  const Node* Find(std::string_view key) const;
  const Entry* FindEntry(std::string_view key) const;
  // "mapping", "list", "text" - for messages.
  std::string_view KindName() const;
};

struct Node::Entry {
  std::string key;
  Span key_span;
  Node value;
};

// A whole file. `text` is kept for excerpts, without a byte-order mark.
struct Document {
  std::string file;  // as the user named it
  std::string text;
  Node root;
  // The tree is whole, though perhaps with problems that leave its meaning clear enough to look for
  // more of them (a duplicate key: the first one counts). Not with aliases: what the file says
  // depends on them, and a file built of them would have a hundred further problems. Never run what
  // had any.
  bool checkable = false;
};

struct Limits {
  std::size_t bytes_max = 1 << 20;
  std::size_t depth_max = 32;
  std::size_t nodes_max = 100'000;
};

// Reads a YAML text; true when it added no problem. On failure the tree must not be used but to
// look for more problems, and that only when document.checkable. An empty file is a problem. Syntax
// and limits stop at the first error; structural refusals are collected. Every span lies inside the
// text: its line exists and its column is at most one past the line's end.
bool ReadYaml(std::string file, std::string text, const Limits& limits, Document& document,
              Problems& problems);
// A file's content as it is. A file that cannot be read (LR101) or is larger (LR102) is a problem,
// and `text` is empty then.
bool ReadTextFile(const std::string& path, std::size_t bytes_max, std::string& text,
                  Problems& problems);
// Both in one.
bool ReadYamlFile(const std::string& path, const Limits& limits, Document& document,
                  Problems& problems);

}  // namespace labrack::config
