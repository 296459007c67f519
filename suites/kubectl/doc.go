// Package kubectl holds the behaviours of kubectl when it deletes, waits, replaces and drains: which requests its flags
// become, what it refuses to ask, and when it returns. A real kubectl is run, and its requests are read off a proxy. One file
// a topic.
package kubectl
