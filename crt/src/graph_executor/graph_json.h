/* SPDX-License-Identifier: Apache-2.0
 * Reads JSON from left to right without memory of its own. What does not fit sets `bad`, and reading goes nowhere from
 * there. */
#ifndef TVM_RUNTIME_CRT_GRAPH_JSON_H_
#define TVM_RUNTIME_CRT_GRAPH_JSON_H_

#include <stddef.h>
#include <stdint.h>

typedef struct {
  const char* at;
  int bad;
} JsonReader;

/* Takes the character, if it is next. */
int JsonReader_Take(JsonReader* r, char what);
/* For the members of a list or an object, its opening bracket taken: whether there is one more; *first begins as 1. */
int JsonReader_Next(JsonReader* r, char close, int* first);
/* A text and its zero, cut to the capacity; returns how long it is whole. */
size_t JsonReader_Text(JsonReader* r, char* out, size_t capacity);
int64_t JsonReader_Integer(JsonReader* r);
/* Any value. */
void JsonReader_Skip(JsonReader* r);
/* How many members the list has that is next; it is not taken. */
size_t JsonReader_Count(const JsonReader* r);

#endif /* TVM_RUNTIME_CRT_GRAPH_JSON_H_ */
