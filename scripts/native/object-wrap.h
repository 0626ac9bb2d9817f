// Goes before ssh2's cipher addon when it is compiled. node::ObjectWrap takes off a hook of its environment when it is
// destroyed, and Node 24 aborts the whole process where that happens in a collection of garbage that runs as a task,
// because no context is entered then. Every closed connection leaves such objects. nan's class of the same name has no hook.
#include <node.h>
#include <node_object_wrap.h>
#include <nan.h>
#define ObjectWrap Nan::ObjectWrap
