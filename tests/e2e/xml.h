// Whether a text is well-formed XML, by a parser that is not ours.
#pragma once

#include <sstream>
#include <string>

#include <boost/property_tree/xml_parser.hpp>

namespace labrack {

inline bool XmlIsWellFormed(const std::string& text) {
  std::istringstream stream(text);
  boost::property_tree::ptree tree;
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error&) {
    return false;
  }
  return true;
}

}  // namespace labrack
