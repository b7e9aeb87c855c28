/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_json.h"

#include <string.h>

static void blanks(JsonReader* r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t') ++r->at;
}
int JsonReader_Take(JsonReader* r, char what) {
  blanks(r);
  if (*r->at != what) return 0;
  ++r->at;
  return 1;
}
static void expect(JsonReader* r, char what) {
  if (!JsonReader_Take(r, what)) r->bad = 1;
}

int JsonReader_Next(JsonReader* r, char close, int* first) {
  if (r->bad) return 0;
  if (JsonReader_Take(r, close)) return 0;
  if (!*first) expect(r, ',');
  *first = 0;
  return !r->bad;
}

size_t JsonReader_Text(JsonReader* r, char* out, size_t capacity) {
  size_t n = 0;
  expect(r, '"');
  while (!r->bad && *r->at != '"') {
    char c = *r->at++;
    if (c == '\0') {
      --r->at;
      r->bad = 1;
      break;
    }
    if (c == '\\') { /* names have no letters that need \u */
      static const char kShort[] = "b\bf\fn\nr\rt\t";
      const char* known = *r->at ? strchr(kShort, *r->at) : NULL;
      if (*r->at == '\0' || *r->at == 'u') {
        r->bad = 1;
        break;
      }
      c = known && (known - kShort) % 2 == 0 ? known[1] : *r->at;
      ++r->at;
    }
    if (n + 1 < capacity) out[n] = c;
    ++n;
  }
  if (!r->bad) ++r->at;
  if (capacity > 0) out[n < capacity ? n : capacity - 1] = '\0';
  return n;
}

int64_t JsonReader_Integer(JsonReader* r) {
  int negative, digits = 0;
  int64_t v = 0;
  blanks(r);
  negative = *r->at == '-';
  if (negative) ++r->at;
  for (; *r->at >= '0' && *r->at <= '9'; ++r->at, ++digits) {
    if (v > (INT64_MAX - 9) / 10)
      r->bad = 1;
    else
      v = v * 10 + (*r->at - '0');
  }
  if (digits == 0) r->bad = 1;
  return negative ? -v : v;
}

/* Brackets and texts are followed; what is between them is not checked. */
void JsonReader_Skip(JsonReader* r) {
  int depth = 0;
  do {
    blanks(r);
    if (*r->at == '"') {
      (void)JsonReader_Text(r, NULL, 0);
    } else if (*r->at == '\0') {
      r->bad = 1;
    } else if (*r->at == '[' || *r->at == '{') {
      ++depth;
      ++r->at;
    } else if (*r->at == ']' || *r->at == '}') {
      if (--depth < 0)
        r->bad = 1;
      else
        ++r->at;
    } else if (depth > 0) {
      ++r->at;
    } else {
      while (*r->at && !strchr(",]} \n\r\t", *r->at)) ++r->at;
    }
  } while (depth > 0 && !r->bad);
}

size_t JsonReader_Count(const JsonReader* r) {
  JsonReader ahead = *r;
  size_t n = 0;
  int first = 1;
  expect(&ahead, '[');
  while (JsonReader_Next(&ahead, ']', &first)) {
    JsonReader_Skip(&ahead);
    ++n;
  }
  return ahead.bad ? 0 : n;
}
