-- Whether who was refused had shown a token, or a good signature: what strangers send says nothing of the sources.
alter table rejections add column is_authenticated boolean not null default true;
