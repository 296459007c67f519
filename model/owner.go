package model

import "strings"

// Owner is an owner reference.
type Owner struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Blocks reports blockOwnerDeletion.
	Blocks bool `json:"blocks,omitempty"`
}

// blocks marks an owner that its dependent blocks.
const blocks = "!"

// String is the owner as Object.Owners names it.
func (o Owner) String() string {
	text := o.Name + "/" + o.UID
	if o.Blocks {
		text += blocks
	}
	return text
}

// OwnersOf are the owners that names stand for.
func OwnersOf(names Names) []Owner {
	var owners []Owner
	for _, text := range names.List() {
		name, uid, _ := strings.Cut(text, "/")
		uid, blocking := strings.CutSuffix(uid, blocks)
		owners = append(owners, Owner{Name: name, UID: uid, Blocks: blocking})
	}
	return owners
}
