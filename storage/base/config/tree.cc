#include "storage/base/config/tree.h"

namespace labrack::config {

const Node::Entry* Node::FindEntry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Node* Node::Find(std::string_view key) const {
  const Entry* entry = FindEntry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

std::string_view Node::KindName() const {
  switch (kind) {
    case Kind::kScalar:
      return "text";
    case Kind::kList:
      return "list";
    case Kind::kMap:
      return "mapping";
  }
  return "value";
}

}  // namespace labrack::config
